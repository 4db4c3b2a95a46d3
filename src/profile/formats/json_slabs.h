// JSLB files: JSON texts and binary number arrays ("slabs") in one file. A member {"$s": N} in a text refers to slab N.
// samply and the Firefox Profiler save profiles in this format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

struct JsonSlab {
    enum class Type : std::uint8_t {
        int8,
        uint8,
        int16,
        uint16,
        int32,
        uint32,
        float32,
        float64,
        int64,
        uint64,
        json,
    } type = Type::json;
    std::uint64_t offset = 0, size = 0;
};

class JsonSlabs {
public:
    static bool recognises(std::string_view beginning);
    // invalid: an unsupported version or type.
    static Result<JsonSlabs> open(ImportSource& source);

    // Returns whether all slabs end within the file.
    [[nodiscard]] bool whole() const { return whole_; }
    [[nodiscard]] const JsonSlab* root() const { return find(root_); }
    // nullptr: the file has no such slab.
    [[nodiscard]] const JsonSlab* find(std::uint64_t index) const {
        return index < slabs_.size() ? &slabs_[static_cast<std::size_t>(index)] : nullptr;
    }

private:
    std::vector<JsonSlab> slabs_;
    std::uint64_t root_ = 0;
    bool whole_ = false;
};

// Calls `each` with every number of a slab that is not JSON. Returning false stops.
Result<bool> read_numbers(ImportSource& source, const JsonSlab& slab, const std::function<bool(double)>& each);

}  // namespace flamewire::profile
