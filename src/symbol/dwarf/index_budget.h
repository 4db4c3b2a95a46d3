// Limits the memory for the index of one file's debug info. One byte of a line program can stand for a row, and any
// number of units and functions can refer to the same range list. A small file could otherwise exhaust the memory.
#pragma once

#include <cstdint>

#include "base/growth.h"

namespace flamewire::symbol {

// Per file. Chromium's debug info, the largest known, needs 1 GiB if every unit of it is looked up.
inline constexpr std::uint64_t max_index_bytes = std::uint64_t{2} << 30;

class IndexBudget {
public:
    explicit IndexBudget(std::uint64_t file_bytes) : limit_(growth_limit(file_bytes, max_index_bytes)), left_(limit_) {}

    // False: the budget is exceeded, and all later calls fail too.
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
