export { python as mode } from '@codemirror/legacy-modes/mode/python';
