// How many bytes the index of one file's debug info may take. A byte of a line program stands for a row, and one list of
// ranges for as many ranges as units and functions refer to it, so a small file could otherwise fill the memory.
#pragma once

#include <cstdint>

#include "base/growth.h"

namespace flamewire::symbol {

// Of one file. Chromium's, the largest that is known, has 1 GiB if every unit of it is looked up.
inline constexpr std::uint64_t max_index_bytes = std::uint64_t{2} << 30;

class IndexBudget {
public:
    explicit IndexBudget(std::uint64_t file_bytes) : limit_(growth_limit(file_bytes, max_index_bytes)), left_(limit_) {}

    // False: they are not there, and nothing is from now on.
    [[nodiscard]] bool take(std::uint64_t bytes) {
        exceeded_ = exceeded_ || bytes > left_;
        if (!exceeded_) left_ -= bytes;
        return !exceeded_;
    }
    [[nodiscard]] bool exceeded() const { return exceeded_; }
    [[nodiscard]] std::uint64_t limit() const { return limit_; }

private:
    std::uint64_t limit_, left_;
    bool exceeded_ = false;
};

}  // namespace flamewire::symbol
