#include "views/hit_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "profile/query/hits.h"

namespace flamewire::views {
namespace {

constexpr std::int64_t max_errno = 4'095;
// A value of kind bytes is printed up to here.
constexpr std::size_t max_bytes = 64;
// Agents send at most 1,024 bytes.
constexpr std::size_t max_text = 4'096;

std::string with_error(std::int64_t result) {
    const char* name = result < 0 && result >= -max_errno ? ::strerrorname_np(static_cast<int>(-result)) : nullptr;
    return name == nullptr ? std::to_string(result) : fmt::format("{} ({})", result, name);
}

}  // namespace

HitValues::HitValues(const profile::Store& store) : store_(store) {
    for (const profile::Event& event : store.events()) {
        OfEvent& known = events_.emplace_back();
        known.description = event.description;
        for (const wire::EventField& field : event.fields) {
            known.names.push_back(field.name);
            known.kinds.push_back(field.kind);
        }
        known.styles = value_styles(event.print_format, known.names);
        known.system_call_exit =
            event.name.starts_with("syscalls:sys_exit") || event.name.starts_with("raw_syscalls:sys_exit");
    }
}

const HitValues::OfEvent& HitValues::of(const HitRef& ref) const {
    static const OfEvent unknown;
    const OfEvent& event = events_[ref.chunk->event];
    const bool known = event.names.size() == ref.chunk->fields && event.description == ref.chunk->description;
    return known ? event : unknown;
}

const std::vector<std::string>& HitValues::fields(const HitRef& ref) const { return of(ref).names; }

std::optional<std::size_t> HitValues::field(const HitRef& ref, std::string_view name) const {
    const std::vector<std::string>& names = of(ref).names;
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
}

std::string HitValues::text(const HitRef& ref, std::size_t field) const {
    const OfEvent& event = of(ref);
    const std::uint64_t value = ref.chunk->values_of(ref.index)[field];
    const ValueStyle& style = event.styles[field];
    switch (event.kinds[field]) {
        case wire::FieldKind::text: return printable(ref.chunk->text(value).substr(0, max_text));
        case wire::FieldKind::bytes: {
            const std::string_view bytes = ref.chunk->text(value);
            return to_hex(as_bytes_view(bytes.substr(0, max_bytes))) + (bytes.size() > max_bytes ? "…" : "");
        }
        default: break;
    }
    if (std::string name = named_value(style, value); !name.empty()) return printable(name);
    if (const profile::LocationId place = ref.chunk->place_of(value); place != 0)
        if (std::string name = profile::place_name(store_, place); !name.empty()) return printable(name);
    const bool is_signed = event.kinds[field] == wire::FieldKind::signed_number;
    if (event.system_call_exit && event.names[field] == "ret") return with_error(static_cast<std::int64_t>(value));
    if (event.kinds[field] == wire::FieldKind::address || (style.hexadecimal && !is_signed))
        return fmt::format("{:#x}", value);
    return is_signed ? std::to_string(static_cast<std::int64_t>(value)) : std::to_string(value);
}

std::optional<double> HitValues::number(const HitRef& ref, std::size_t field) const {
    const wire::FieldKind kind = of(ref).kinds[field];
    if (kind == wire::FieldKind::text || kind == wire::FieldKind::bytes) return std::nullopt;
    const std::uint64_t value = ref.chunk->values_of(ref.index)[field];
    return kind == wire::FieldKind::signed_number ? static_cast<double>(static_cast<std::int64_t>(value))
                                                  : static_cast<double>(value);
}

bool HitValues::is_signed(const HitRef& ref, std::size_t field) const {
    return of(ref).kinds[field] == wire::FieldKind::signed_number;
}

std::string HitValues::line(const HitRef& ref) const {
    std::string line;
    const std::vector<std::string>& names = of(ref).names;
    for (std::size_t i = 0; i < names.size(); ++i)
        line += fmt::format("{}{}={}", i == 0 ? "" : " ", printable(names[i]), text(ref, i));
    return line;
}

}  // namespace flamewire::views
