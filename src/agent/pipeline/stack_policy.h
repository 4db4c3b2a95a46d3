// Chooses the stack mode of each process from what its stacks need. Pure.
//
// Unwind tables classify every stack: the kernel's frame-pointer chain alone is right; it is right with the innermost
// frames from a small stack copy; or the stack needs the whole copy. A process is sampled in the cheapest mode that is
// enough for 99.5 % of its stacks. The first mode is a guess from the tables of its main program (first_choice). The
// mode is raised as soon as a few stacks show that it is too small, and lowered only after many that did not need it.
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

// Returns the first mode, from the unwind tables of a program file: how much of its code keeps the frame pointer. dwarf
// if the file has no tables or cannot be read.
StackChoice first_choice(const std::string& path);

class StackPolicy {
public:
    // Stands for all processes that inherited their mode from their parent. Each may have too few stacks for a
    // decision, but together they can raise the mode of later processes.
    static constexpr std::uint64_t inherited = 0;

    // Adds one user stack of a process that is sampled in `mode`. `process` is any number that is never reused.
    void note(std::uint64_t process, wire::StackMode mode, unwind::StackNeed need, std::uint64_t time_ns);

    // A stack of the process continued in another memory area. No copy contains it, but a chain may lead there.
    void note_other_stack(std::uint64_t process);

    // Processes that should be sampled in another mode now, without duplicates. The caller calls chose() after changing
    // the mode. If it cannot change it, it calls wanted() again later.
    struct Change {
        std::uint64_t process = 0;
        StackChoice choice;
    };
    [[nodiscard]] std::vector<Change> wanted() const;
    void chose(std::uint64_t process, const StackChoice& choice);

    // The reason for the process's mode. Empty: the mode came from its parent, and nothing was measured yet.
    [[nodiscard]] const std::string& why(std::uint64_t process) const;
    void forget(std::uint64_t process) { processes_.erase(process); }

private:
    struct State {
        wire::StackMode mode = wire::StackMode::fp;
        std::string why;
        std::uint64_t since_ns = 0;  // the first stack in this mode
        std::uint64_t newest_ns = 0;
        std::array<std::uint64_t, unwind::stack_needs> needs{};  // since since_ns
        std::uint32_t raised = 0;                                // how often a mode proved too small
        bool other_stacks = false;
    };
    static void add(State& state, wire::StackMode mode, unwind::StackNeed need, std::uint64_t time_ns);
    static bool needs_change(const State& state, std::uint64_t soonest, StackChoice& choice);

    std::array<State, 4> inherited_;  // by mode
    std::unordered_map<std::uint64_t, State> processes_;
};

}  // namespace flamewire::agent
