// Measures the cost of reading and running unwind tables. A file can describe a frame so that it takes minutes. With
// these limits the stack ends early as StopReason::too_much_work, and a round of the sampler stays short.
#pragma once

#include <cstdint>
#include <limits>

namespace flamewire::unwind {

class TableWork {
public:
    // In units of one table instruction, about 2 ns on a desktop CPU. The longest stacks of the largest programs cost a
    // tenth of `most_in_stack` with cold caches.
    static constexpr std::uint64_t most_in_stack = std::uint64_t{8} << 20, most_in_round = std::uint64_t{32} << 20;

    void begin_stack() { stack_end_ = done_ + most_in_stack; }
    // If this is never called, only stacks are limited.
    void begin_round() { round_end_ = done_ + most_in_round; }
    void add(std::uint64_t units) { done_ += units; }
    [[nodiscard]] bool stack_spent() const { return done_ >= stack_end_; }
    // If true, results from tables may be wrong, because they were not read to the end.
    [[nodiscard]] bool spent() const { return stack_spent() || done_ >= round_end_; }

private:
    std::uint64_t done_ = 0;
    std::uint64_t stack_end_ = most_in_stack, round_end_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace flamewire::unwind
