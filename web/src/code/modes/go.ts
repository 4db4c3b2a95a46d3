export { go as mode } from '@codemirror/legacy-modes/mode/go';
