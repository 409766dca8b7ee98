/** Downloads a text as a file. */

export function download(name: string, text: string, mediaType: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own reference to the text by then.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}
