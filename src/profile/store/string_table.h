// Interned strings: equal texts have equal ids, and id 0 is the empty string. Texts never move, so views stay valid as
// long as the table exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "profile/store/id_index.h"
#include "profile/store/model.h"

namespace flamewire::profile {

class StringTable {
public:
    StringTable();

    StringId intern(std::string_view text);
    // The id of an interned text, else 0.
    [[nodiscard]] StringId find(std::string_view text) const;
    // The text; "" if the id does not exist.
    [[nodiscard]] std::string_view operator[](StringId id) const {
        return id < data_.size() ? std::string_view(data_[id], size_[id]) : std::string_view();
    }
    [[nodiscard]] std::size_t size() const { return data_.size(); }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    const char* keep(std::string_view text);

    std::vector<const char*> data_;
    std::vector<std::uint32_t> size_;
    std::vector<std::unique_ptr<char[]>> blocks_;
    std::size_t block_free_ = 0;  // bytes left in the block that is being filled
    char* block_next_ = nullptr;
    std::size_t block_bytes_ = 0;  // of all blocks
    IdIndex index_;
};

}  // namespace flamewire::profile
