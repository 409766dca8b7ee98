/** Hands a text to the person as a file. */

export function download(name: string, text: string, mediaType: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own hold on the text by then.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}
