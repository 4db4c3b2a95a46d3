// Arbitrary bytes as jit-PID.dump, which grows in two steps: each entry must be a range of addresses with a past time,
// lines must ascend and have files, and unwind rules must be inside their function.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/process/jitdump.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

void check_body(const JitBody& body) {
    if (body.name.empty() || body.name.size() > max_jit_name_bytes) std::abort();
    for (std::size_t i = 0; i < body.rows.size(); ++i)
        if (body.rows[i].file >= body.files.size() || (i > 0 && body.rows[i].offset < body.rows[i - 1].offset))
            std::abort();
}

void check_rules(const JitBody& body, std::uint64_t size) {
    for (std::uint64_t offset = 0; offset < std::min<std::uint64_t>(size, 4096);) {
        const auto rule = body.rules.find(offset, unwind::Arch::x86_64);
        if (rule && (rule->kind != unwind::Rule::Kind::compact || rule->before != 0 || rule->after == 0 ||
                     rule->after > size - offset))
            std::abort();
        offset += rule ? rule->after : 1;
    }
}

void check(JitdumpFile& dump, const PollTimes& times) {
    std::vector<JitEntry> entries;
    while (dump.advance(1, times, entries) == JitProgress::more) {
    }
    for (const JitEntry& entry : entries) {
        if (entry.start >= entry.end || entry.from_ns > times.now_ns) std::abort();
        if (entry.moved_from != 0) continue;
        const auto body = dump.body_of(entry.record, entry.lines, entry.unwinding);
        if (!body) continue;
        check_body(*body);
        check_rules(*body, entry.end - entry.start);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int file = ::memfd_create("dump", MFD_CLOEXEC);
    if (file < 0) return 0;
    const std::size_t half = size / 2;
    if (::write(file, data, half) < 0) std::abort();
    JitdumpFile dump{UniqueFd(file)};
    check(dump, {0, 1'000, 0});
    if (::write(file, data + half, size - half) < 0) std::abort();
    check(dump, {1'000, 2'000, INT64_MAX});
    return 0;
}
