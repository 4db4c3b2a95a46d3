export { cpp as mode } from '@codemirror/legacy-modes/mode/clike';
