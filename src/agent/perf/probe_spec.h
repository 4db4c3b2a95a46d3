// Parses dynamic probes of the event grammar. Pure. docs/sampling/probes.md documents the grammar:
//   uprobe:FUNC@"FILE"   uprobe:FUNC+0x10@"FILE"   uprobe:FILE:0xOFFSET   usdt:PROVIDER:NAME@"FILE"
//   kprobe:FUNC   kprobe:FUNC+0x10   uretprobe:FUNC@"FILE"   kretprobe:FUNC
// each optionally followed by /FILTER/ATTRIBUTE/…/ and @HZ. Attributes: alias=NAME, arg=NAME:VALUE, NAME=VALUE. A VALUE
// is a fetch argument of Documentation/trace/uprobetracer.rst or kprobetrace.rst, or begins with $arg1 … $arg6
// or $retval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// A value that the kernel reads at each hit. It becomes a field of the tracepoint, for filters.
struct ProbeArgument {
    std::string name;
    std::string fetch;  // only letters, digits and $%+-():._\[]
    bool operator==(const ProbeArgument&) const = default;
};

struct ProbeSpec {
    enum class Kind : std::uint8_t { uprobe, usdt, kprobe };
    Kind kind = Kind::uprobe;
    bool returns = false;        // uprobe, kprobe: where the function returns
    std::string file;            // a path, or a name without slashes; empty: kprobe
    std::string function;        // may be a pattern with *; empty: `offset` counts from the start of the file
    std::uint64_t offset = 0;    // bytes
    std::string provider, name;  // usdt; may be patterns
    std::vector<ProbeArgument> arguments;
    std::string alias;       // empty: none
    std::string attributes;  // as written, with the slashes; empty: none
    [[nodiscard]] bool in_kernel() const { return kind == Kind::kprobe; }
};

// A probe and what is common to all events.
struct ParsedProbe {
    ProbeSpec probe;
    std::string name;  // the alias, or the text without its rate
    std::string filter;
    std::string_view rate;  // what follows the last @: "99"; a view into the text
};

// Whether an event of the grammar is a probe; then parse_probe() parses it.
bool is_probe(std::string_view item);

// Errors: invalid. The sentence names the wrong part.
Result<ParsedProbe> parse_probe(std::string_view item);

// The end of an unquoted path at the start of `list` ("uprobe:/usr/bin/demo:0x1000,…"), whose slashes and commas are not
// part of the grammar; 0: there is none.
std::size_t unquoted_path_end(std::string_view list);

// Name of the event for one function or USDT probe of a pattern.
std::string name_of_match(const ProbeSpec& probe, std::string_view provider, std::string_view match);

}  // namespace flamewire::agent
