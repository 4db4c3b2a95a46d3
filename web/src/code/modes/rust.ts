export { rust as mode } from '@codemirror/legacy-modes/mode/rust';
