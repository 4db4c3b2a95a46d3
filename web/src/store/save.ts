// Downloads a file that the page itself creates.
export function saveFile(name: string, type: string, content: string | Blob): void {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Some browsers read the address only after the user has confirmed the download.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
