// Values of hits as people read them: numbers, flags and addresses as names, and results of system calls as errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/store.h"
#include "views/print_format.h"

namespace flamewire::views {

// One hit of a store. Valid as long as the store does not change.
struct HitRef {
    const profile::HitChunk* chunk = nullptr;
    std::size_t index = 0;

    [[nodiscard]] const profile::Hit& hit() const { return chunk->hits[index]; }
    [[nodiscard]] std::uint64_t number() const { return chunk->first + index; }
};

class HitValues {
public:
    explicit HitValues(const profile::Store& store);

    // The fields of the hit's event; empty if it has none, or if they have changed since.
    [[nodiscard]] const std::vector<std::string>& fields(const HitRef& ref) const;
    // The index of a field of this event; nullopt: it has none of this name.
    [[nodiscard]] std::optional<std::size_t> field(const HitRef& ref, std::string_view name) const;
    [[nodiscard]] std::string text(const HitRef& ref, std::size_t field) const;
    // Nullopt: the value is a text.
    [[nodiscard]] std::optional<double> number(const HitRef& ref, std::size_t field) const;
    [[nodiscard]] bool is_signed(const HitRef& ref, std::size_t field) const;
    // "fd=3 ret=-2 (ENOENT)"
    [[nodiscard]] std::string line(const HitRef& ref) const;

private:
    struct OfEvent {
        std::vector<std::string> names;
        std::vector<wire::FieldKind> kinds;
        std::vector<ValueStyle> styles;
        bool system_call_exit = false;
        std::uint32_t description = 0;
    };
    [[nodiscard]] const OfEvent& of(const HitRef& ref) const;

    const profile::Store& store_;
    std::vector<OfEvent> events_;  // by EventId
};

}  // namespace flamewire::views
