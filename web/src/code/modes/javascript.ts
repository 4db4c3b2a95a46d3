export { typescript as mode } from '@codemirror/legacy-modes/mode/javascript';
