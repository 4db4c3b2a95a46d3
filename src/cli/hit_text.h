// Formats hits of traced events as text and JSON. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/terminal.h"
#include "views/hits.h"

namespace flamewire::cli {

// "comm 4711/4712 [001] 12.345678: event: fd=3 count=8", and below it up to `frames` lines with the functions of the
// stack, innermost first. Times are seconds since `origin_ns`.
std::string hit_text(const profile::Store& store, const views::HitValues& values, const views::HitRef& ref,
                     std::uint64_t origin_ns, std::size_t frames);
// The same as one line of JSON.
std::string hit_json(const profile::Store& store, const views::HitValues& values, const views::HitRef& ref,
                     std::uint64_t origin_ns, std::size_t frames);

// One row per key: hits, and the figures of `value` unless it is empty; then its distribution if `distribution`.
// most_rows 0: all.
std::string hit_table_text(const views::HitTable& table, const std::string& key, const std::string& value,
                           std::size_t most_rows, bool distribution, const OutputStyle& style);

}  // namespace flamewire::cli
