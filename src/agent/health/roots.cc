#include "agent/health/roots.h"

#include <string_view>

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t number_bytes = 32;

}  // namespace

std::optional<std::uint64_t> read_number(const std::string& path) {
    const auto head = read_head(path, number_bytes);
    if (!head) return std::nullopt;
    std::string_view text = *head;
    return take_number(text, 10);
}

std::optional<std::int64_t> read_signed_number(const std::string& path) {
    const auto head = read_head(path, number_bytes);
    if (!head) return std::nullopt;
    std::string_view text = *head;
    const bool negative = take_char(text, '-');
    const auto value = take_number(text, 10);
    if (!value || *value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    const auto magnitude = static_cast<std::int64_t>(*value);
    return negative ? -magnitude : magnitude;
}

}  // namespace flamewire::agent
