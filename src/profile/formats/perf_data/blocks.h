// Memory for records, in large blocks. A block is reused when none of its records is in use.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace flamewire::profile::perf_data {

struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
    std::size_t waiting = 0;  // references: one per record in use, and one while the block is being filled
};

class Blocks {
public:
    // Returns a block with one reference, which the caller must release().
    Block* take(std::size_t at_least) {
        Block* found = nullptr;
        for (const auto& block : blocks_)
            if (block->waiting == 0 && block->capacity >= at_least &&
                (found == nullptr || found->capacity > block->capacity))
                found = block.get();
        if (found == nullptr) {
            blocks_.push_back(std::make_unique<Block>());
            found = blocks_.back().get();
            found->bytes = std::make_unique_for_overwrite<std::byte[]>(at_least);
            found->capacity = at_least;
        }
        found->waiting = 1;
        held_bytes_ += found->capacity;
        return found;
    }
    static void hold(Block& block) { ++block.waiting; }
    void release(Block& block) {
        if (--block.waiting == 0) held_bytes_ -= block.capacity;
    }
    [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }

private:
    std::vector<std::unique_ptr<Block>> blocks_;
    std::size_t held_bytes_ = 0;
};

}  // namespace flamewire::profile::perf_data
