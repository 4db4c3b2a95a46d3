// Parses hardware breakpoints of the event grammar, and what they become for the kernel. Pure.
// docs/sampling/events.md documents the grammar, which is perf's and symbols:
//   mem:0xADDRESS   mem:SYMBOL[+OFFSET]   mem:SYMBOL[+OFFSET]@"FILE"
// each optionally followed by /LENGTH, :ACCESS (of r, w, x), :MODIFIERS (of u, k) and @HZ.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

struct EventPart;
struct EventSpec;

struct BreakpointSpec {
    std::string symbol;         // empty: `address` is absolute
    std::string file;           // a path, or a name without slashes; empty: the program of the process
    std::uint64_t address = 0;  // or bytes from the symbol
    std::uint32_t access = 0;   // HW_BREAKPOINT_R, HW_BREAKPOINT_W, both, or HW_BREAKPOINT_X
    std::uint32_t length = 0;   // bytes; 0: that of the symbol, or default_breakpoint_length()
};

// A breakpoint and what is common to all events.
struct ParsedBreakpoint {
    BreakpointSpec breakpoint;
    std::string name;            // the text without its rate
    std::string_view modifiers;  // of u and k; a view into the text, like `rate`
    std::string_view rate;       // what follows the last @: "99"
};

// Whether an event of the grammar is a breakpoint; then parse_breakpoint() parses it.
bool is_breakpoint(std::string_view item);

// invalid: the sentence names the wrong part.
Result<ParsedBreakpoint> parse_breakpoint(std::string_view item);

// perf's: 4 bytes for data; what the architecture requires for code.
std::uint32_t default_breakpoint_length(std::uint32_t access);

// The part for a breakpoint at `address`. `pid`: the process to which the address belongs, with children that it forks
// later; 0: any process. invalid: the CPU cannot have such a breakpoint; `name` is for the sentence.
Result<EventPart> breakpoint_part(std::string_view name, std::uint64_t address, std::uint32_t length,
                                  std::uint32_t access, std::uint32_t pid);

bool is_breakpoint(const EventPart& part);
bool is_breakpoint(const EventSpec& spec);
// The process of breakpoint_part(); 0: the part applies to any process, as parts of all other events do.
std::uint32_t process_of(const EventPart& part);
// Changes the processes of a breakpoint on a symbol: keeps the parts of processes in `kept`, and adds `fresh`. If there is
// none, one part stays, for no process. Does nothing for other events.
void replace_processes(EventSpec& spec, const std::vector<std::uint32_t>& kept, const std::vector<EventPart>& fresh);
// Whether the CPU reports the access after the instruction, so that samples have the address of the next one.
bool reports_next_instruction(const EventPart& part);
// 64-bit kernels have the upper half of all addresses. 32-bit kernels begin at 0xc0000000 in most configurations, on Arm
// 16 MiB before that, with their modules.
constexpr bool is_kernel_address(std::uint64_t address, bool kernel_is_64bit) {
    return address >= (kernel_is_64bit ? std::uint64_t{1} << 63 : 0xbf00'0000);
}
// As the kernel that runs here sees it.
bool is_kernel_address(std::uint64_t address);

// Sets type and config words.
void set_configuration(perf_event_attr& attr, const EventPart& part);

}  // namespace flamewire::agent
