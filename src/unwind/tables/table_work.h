// What reading and running unwind tables has cost. A file can describe one frame so that it takes minutes; with these
// limits a stack ends early instead, as StopReason::too_much_work, and a round of the sampler stays short.
#pragma once

#include <cstdint>
#include <limits>

namespace flamewire::unwind {

class TableWork {
public:
    // In units of one instruction of a table, about 2 ns on a desktop CPU. The longest stacks of the largest programs
    // cost a tenth of `most_in_stack` when nothing is cached.
    static constexpr std::uint64_t most_in_stack = std::uint64_t{8} << 20, most_in_round = std::uint64_t{32} << 20;

    void begin_stack() { stack_end_ = done_ + most_in_stack; }
    // Without rounds only stacks are limited.
    void begin_round() { round_end_ = done_ + most_in_round; }
    void add(std::uint64_t units) { done_ += units; }
    [[nodiscard]] bool stack_spent() const { return done_ >= stack_end_; }
    // What tables say now may be wrong: they were not read to the end.
    [[nodiscard]] bool spent() const { return stack_spent() || done_ >= round_end_; }

private:
    std::uint64_t done_ = 0;
    std::uint64_t stack_end_ = most_in_stack, round_end_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace flamewire::unwind
