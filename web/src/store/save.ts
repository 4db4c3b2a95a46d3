// Files that the page makes itself.
export function saveFile(name: string, type: string, content: string | Blob): void {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Some browsers read it only after a question to the person.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
