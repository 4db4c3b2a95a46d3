// Rules for the page, the browser tests and these checks. Formatting is Prettier's; types are tsc's.
import globals from 'globals';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

// The folders from which each folder of the page may import, lowest first. model/ may also import the types of the API.
const imports = {
  model: [],
  api: ['model'],
  text: ['model', 'api'],
  code: ['model', 'api', 'text'],
  flame: ['model', 'api', 'text'],
  timeline: ['model', 'api', 'text'],
  store: ['model', 'api', 'text', 'code', 'flame', 'timeline'],
  components: ['model', 'api', 'text', 'code', 'flame', 'timeline', 'store'],
};
const boundaries = Object.entries(imports).map(([folder, allowed]) => {
  const others = Object.keys(imports).filter((other) => other !== folder && !allowed.includes(other));
  const regex = `^(\\.\\./)+(${others.map((other) => (folder === 'model' && other === 'api' ? 'api/(?!types$)' : `${other}/`)).join('|')})`;
  const message = `src/${folder} may import from ${['itself', ...allowed].join(', ')} only.`;
  if (others.length === 0) return {};
  return {
    files: [`web/src/${folder}/**`],
    rules: { 'no-restricted-imports': ['error', { patterns: [{ regex, message }] }] },
  };
});

export default tseslint.config(
  ...tseslint.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      // Properties that are destructured only to omit them have an underscore.
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-restricted-globals': ['error', 'event', 'name'],
    },
  },
  ...boundaries,
  { files: ['web/src/**'], plugins: { 'react-hooks': reactHooks }, rules: { 'react-hooks/rules-of-hooks': 'error' } },
);
