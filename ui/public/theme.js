// Before the first paint: the chosen theme and height of rows, so that nothing flashes. Without a choice the system's counts.
const chosen = localStorage.getItem("drover.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
if (localStorage.getItem("drover.density") === "dense")
  document.documentElement.dataset.density = "dense";
