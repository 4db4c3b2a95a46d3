// Interned strings, identified by small numbers. 0 is the empty string. Numbers and texts stay valid as long as the
// pool.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace flamewire::symbol {

class StringPool {
public:
    StringPool() { texts_.emplace_back(); }

    std::uint32_t intern(std::string_view text) {
        if (text.empty()) return 0;
        if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
        const auto number = static_cast<std::uint32_t>(texts_.size());
        numbers_.emplace(texts_.emplace_back(text), number);
        return number;
    }
    [[nodiscard]] const std::string& at(std::uint32_t number) const { return texts_[number]; }
    [[nodiscard]] std::size_t size() const { return texts_.size(); }

private:
    std::deque<std::string> texts_;  // a deque, as the views in numbers_ point into it
    std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace flamewire::symbol
