// Loaded into the Firefox Profiler's process (node --import). Its upgraders change a profile in place, so the parsed object is
// written to FLAMEWIRE_KEPT_PROFILE as soon as it has the newest version. Then the process exits.
import { writeFileSync } from "node:fs";

const parse = JSON.parse;
const newest = Number(process.env.FLAMEWIRE_NEWEST_VERSION);

function keep(profile) {
  if (profile.meta.preprocessedProfileVersion < newest) {
    setImmediate(keep, profile);
    return;
  }
  writeFileSync(process.env.FLAMEWIRE_KEPT_PROFILE, JSON.stringify(profile, (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value)));
  process.exit(0);
}

JSON.parse = (...what) => {
  const value = parse(...what);
  if (value?.meta?.preprocessedProfileVersion !== undefined) setImmediate(keep, value);
  return value;
};
