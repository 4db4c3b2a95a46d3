// Frame-pointer chains of this process, checked against its unwind tables while they become rows.
#include <catch2/catch.hpp>
#include <linux/perf_event.h>
#include <unistd.h>

#include "agent/pipeline/folder.h"

#if defined(__x86_64__)

// A function at the root, one that keeps the frame pointer, and one that never sets it.
asm(R"(
    .text
chain_root:
    .cfi_startproc
    .cfi_undefined rip
    nop
    nop
    ret
    .cfi_endproc
chain_framed:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset 6, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register 6
chain_framed_body:
    nop
    nop
    pop %rbp
    .cfi_def_cfa 7, 8
    ret
    .cfi_endproc
chain_bare:
    .cfi_startproc
    nop
    nop
    ret
    .cfi_endproc
)");
extern "C" const char chain_root[], chain_framed[], chain_framed_body[], chain_bare[];

namespace flamewire::agent {
namespace {

std::uint64_t at(const char* code) { return reinterpret_cast<std::uintptr_t>(code) + 1; }

// The frames that are shown for a chain, innermost first: "address", or the name of a placeholder.
std::vector<std::string> shown(const std::vector<std::uint64_t>& user) {
    ProcessTableOptions files;
    files.keep_files = true;
    ProcessTable table(files);
    table.attach(static_cast<std::uint32_t>(getpid()));
    FolderOptions options;
    options.events = {{0, 0, 999, 0}};
    options.event_names = {"cpu-clock"};
    options.stacks.emplace();
    options.stacks->check_chains = true;
    Folder folder(options, table);
    SampleRecord sample;
    sample.pid = static_cast<std::uint32_t>(getpid());
    sample.tid = sample.pid;
    sample.time_ns = 1;
    sample.cpu_mode = perf::CpuMode::user;
    std::vector<std::uint64_t> chain = {static_cast<std::uint64_t>(PERF_CONTEXT_USER)};
    chain.insert(chain.end(), user.begin(), user.end());
    sample.callchain = chain;
    folder.add_sample(sample, 0);

    const wire::Batch batch = folder.close_batch();
    std::vector<std::string> frames;
    REQUIRE(batch.rows.size() == 1);
    for (wire::Id id = batch.rows[0].stack; id != 0; id = batch.stacks.at(id - 1).parent) {
        const wire::Location& location = batch.locations.at(batch.stacks.at(id - 1).location - 1);
        frames.push_back(location.name != 0 ? batch.strings.at(location.name - 1) : "address");
    }
    return frames;
}

TEST_CASE("a caller that a frame-pointer chain skips has a placeholder frame") {
    using Frames = std::vector<std::string>;
    const std::uint64_t body = at(chain_framed_body), root = at(chain_root);
    CHECK(shown({body, body, root}) == Frames{"address", "address", "address"});
    CHECK(shown({at(chain_bare), body, root}) == Frames{"address", "[caller missing]", "address", "address"});
    // After the first instruction, the frame pointer is pushed but not set.
    CHECK(shown({at(chain_framed), body, root}) == Frames{"address", "[caller missing]", "address", "address"});
    CHECK(shown({root}) == Frames{"address"});
}

}  // namespace
}  // namespace flamewire::agent

#endif
