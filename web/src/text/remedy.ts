// Finds the command in a remedy, so that it can be copied without the surrounding text.
const command = /`([^`]+)`|\b((?:sudo )?(?:sysctl|setcap|echo|mount|chmod) [^;,]*[^;,.\s])/;

export function commandIn(remedy: string): string {
  const match = command.exec(remedy);
  return (match?.[1] ?? match?.[2] ?? remedy).trim();
}
