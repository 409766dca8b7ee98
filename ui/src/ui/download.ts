/** Downloads a text as a file. */

export function download(name: string, text: string, mediaType: string): void {
  saveFile(name, new Blob([text], { type: mediaType }));
}

/** Downloads bytes as a file. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own reference to the text by then.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}
