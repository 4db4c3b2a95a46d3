// How the user stacks of each process are to be found, decided by what its stacks need. Pure.
//
// Every stack is classified by the unwind tables: would the kernel's frame-pointer chain alone have been right; would
// it with the innermost frames found from a small stack copy; or does it take the whole copy? A process is sampled in
// the cheapest mode that serves 99.5 % of its stacks. It begins with a guess by its main program's tables (first_mode),
// goes up as soon as a few stacks show that the mode is too small, and goes down only after many that did not need it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "unwind/walk/frame_chain.h"
#include "unwind/walk/stack_need.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct StackChoice {
    wire::StackMode mode = wire::StackMode::dwarf;
    std::string why;  // one sentence
};

// The mode to begin with, by the unwind tables of a program's file: how much of its code keeps the frame pointer. dwarf
// when it has no tables, or cannot be read.
StackChoice first_choice(const std::string& path);

class StackPolicy {
public:
    // Stands for all processes that have the mode of the process that started them. Each may have too few stacks to decide
    // by; together they can raise the mode of those to come.
    static constexpr std::uint64_t inherited = 0;

    // One user stack of a process that is sampled in `mode`. `process` is any number that names it for ever.
    void note(std::uint64_t process, wire::StackMode mode, unwind::StackNeed need, std::uint64_t time_ns);

    // A stack of the process went on at another place of memory, which no copy has, but a chain may lead to.
    void note_other_stack(std::uint64_t process);

    // Processes that should be sampled in another mode, now. Each is named once; the caller says chose() when it is
    // done, and asks again later when it could not be.
    struct Change {
        std::uint64_t process = 0;
        StackChoice choice;
    };
    [[nodiscard]] std::vector<Change> wanted() const;
    void chose(std::uint64_t process, const StackChoice& choice);

    // Why it is sampled as it is; empty: its mode came from its parent, and nothing was measured yet.
    [[nodiscard]] const std::string& why(std::uint64_t process) const;
    void forget(std::uint64_t process) { processes_.erase(process); }

private:
    struct State {
        wire::StackMode mode = wire::StackMode::fp;
        std::string why;
        std::uint64_t since_ns = 0;  // the first stack in this mode
        std::uint64_t newest_ns = 0;
        std::array<std::uint64_t, unwind::stack_needs> needs{};  // since then
        std::uint32_t raised = 0;                                // how often a mode proved too small
        bool other_stacks = false;
    };
    static void add(State& state, wire::StackMode mode, unwind::StackNeed need, std::uint64_t time_ns);
    static bool judge(const State& state, StackChoice& choice);

    std::array<State, 4> inherited_;  // by mode
    std::unordered_map<std::uint64_t, State> processes_;
};

}  // namespace flamewire::agent
