// The pieces of code that a walk used last, so that the map is queried once per piece, not once per frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

class CodePieces {
public:
    explicit CodePieces(CodeMap& map) : map_(map) {}

    // nullptr: there is no code. Valid until the next call. Not inlined: the agent is limited in size.
    [[gnu::noinline]] const CodePiece* at(std::uint64_t address) {
        const auto has = [&](const CodePiece& piece) { return address - piece.start < piece.end - piece.start; };
        if (has(pieces_[last_])) return &pieces_[last_];
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (!has(pieces_[i])) continue;
            last_ = i;
            return &pieces_[i];
        }
        const std::optional<CodePiece> found = map_.find(address);
        if (!found || !has(*found)) return nullptr;
        last_ = next_;
        next_ = (next_ + 1) % pieces_.size();
        pieces_[last_] = *found;
        return &pieces_[last_];
    }

private:
    CodeMap& map_;
    std::array<CodePiece, 4> pieces_{};
    std::size_t last_ = 0, next_ = 0;
};

}  // namespace flamewire::unwind
