// Splits a text that arrives in pieces into lines.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

class LineFeed {
public:
    // Calls `each(line)`, without the line break, for every line that ends in this piece. The rest waits for the next
    // piece.
    template <class Each>
    Result<bool> feed(std::string_view text, Each each) {
        if (!rest_.empty()) {
            const std::size_t end = text.find('\n');
            rest_.append(text.substr(0, end));
            if (end == std::string_view::npos) return true;
            TRY(each(rest_));
            rest_.clear();
            text.remove_prefix(end + 1);
        }
        for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
            TRY(each(text.substr(0, end)));
        rest_.assign(text);
        return true;
    }
    // Passes the last line to `each` if it lacks a line break.
    template <class Each>
    Result<bool> finish(Each each) {
        if (!rest_.empty()) TRY(each(rest_));
        rest_.clear();
        return true;
    }

private:
    std::string rest_;
};

}  // namespace flamewire::profile
