// Resolves addresses in JIT code to functions, as of the time of a sample: the sampler's side. Holds the functions that
// were sampled, and asks the reader for the others. A change of the code takes effect at the time of the change, not
// when it was read.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/process/jit_reader.h"
#include "agent/process/process_table.h"
#include "base/range_map.h"

namespace flamewire::agent {

class JitNames {
public:
    explicit JitNames(std::string proc_root) : reader_(std::move(proc_root)) {}

    void add(const JitProcess& process, ProcessHandle owner);
    void found_jitdump(const JitProcess& process);
    // False: so many of its addresses were sampled that it should restart as another module; then call forget().
    [[nodiscard]] bool has_room(ModuleHandle module) const;
    void forget(ModuleHandle module);
    [[nodiscard]] std::vector<std::pair<ModuleHandle, ProcessHandle>> owners() const;

    // Nothing: unknown (so far), so the sample has a bare address, and take_symbols() may name it later. Valid until
    // the next apply().
    std::optional<JitFunction> find(ModuleHandle module, std::uint64_t address, std::uint64_t time_ns);

    void saw_unnamed(ModuleHandle module);  // see ProcessTable::saw_unnamed_jit
    // The unwind rule for the frame whose code is at `address`, if its program wrote one.
    [[nodiscard]] std::optional<unwind::Rule> rule_at(ModuleHandle module, unwind::Arch arch,
                                                      std::uint64_t address) const;

    // True if an answer must be applied before a sample of this time.
    [[nodiscard]] bool is_due(std::uint64_t time_ns) const { return time_ns >= next_change_ns_; }
    // Applies answers up to `time_ns`. Returns the owners of modules whose earlier answers are no longer valid.
    std::vector<ProcessHandle> apply(std::uint64_t time_ns);

    // Call it before reading samples from the rings: sends questions and receives answers, with a brief wait at most.
    // Code that ran until the returned time is known now; leave newer samples for the next round. settle() waits for
    // all available answers.
    [[nodiscard]] std::uint64_t exchange(std::uint64_t now_ns);
    void settle(std::uint64_t patience_ns);
    // Names of bare addresses.
    std::vector<TargetSymbol> take_symbols() { return std::exchange(symbols_, {}); }
    std::vector<wire::Notice> take_notices() { return std::exchange(notices_, {}); }

private:
    struct Code {
        RangeMap<std::shared_ptr<const JitBody>> functions;
        std::map<std::uint64_t, std::uint64_t> bare;  // addresses without a name -> time of the first sample
        std::size_t name_bytes = 0, unnamed_samples = 0;
        ProcessHandle owner = 0;
    };

    bool apply_one(const JitAnswer& answer, Code& code);
    void take_answers();
    void poll_ahead();

    JitReader reader_;
    std::map<ModuleHandle, Code> codes_;
    JitQuestions questions_;
    std::vector<JitAnswer> answers_;  // to be applied once samples reach their time, …
    std::size_t applied_ = 0;         // … except those before this index, which were applied
    std::size_t waiting_bytes_ = 0;   // of the bodies in the remaining answers
    std::size_t name_bytes_ = 0;      // of all codes
    std::uint64_t known_until_ns_ = 0;
    std::uint64_t next_change_ns_ = std::numeric_limits<std::uint64_t>::max();
    std::vector<TargetSymbol> symbols_;
    std::vector<wire::Notice> notices_;
};

}  // namespace flamewire::agent
