#include "agent/perf/breakpoint_spec.h"

#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "agent/perf/event_spec.h"

namespace flamewire::agent {
namespace {

constexpr std::string_view prefix = "mem:";
// EventPart::config of a breakpoint has the process above its access.
constexpr unsigned process_shift = 32;
constexpr std::uint64_t access_bits = (std::uint64_t{1} << process_shift) - 1;
constexpr std::uint64_t no_process = access_bits;

#if defined(__x86_64__) || defined(__i386__)
constexpr bool is_x86 = true;
#else
constexpr bool is_x86 = false;
#endif

std::unexpected<Error> bad(std::string_view item, std::string_view why) {
    return fail(ErrorCode::invalid, fmt::format("event '{}': {}", item, why));
}

bool consists_of(std::string_view text, std::string_view letters) {
    return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

std::optional<std::uint64_t> parse_number(std::string_view digits) {
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

// Where "/LENGTH:ACCESS:MODIFIERS@HZ" begins after an address or symbol, which may contain "::".
std::size_t tail_begin(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '/' || text[i] == '@') return i;
        if (text[i] != ':') continue;
        if (text.substr(i).starts_with("::"))
            ++i;
        else
            return i;
    }
    return text.size();
}

Result<bool> parse_tail(ParsedBreakpoint& parsed, std::string_view item, std::string_view tail) {
    BreakpointSpec& breakpoint = parsed.breakpoint;
    const std::size_t at = std::min(tail.find('@'), tail.size());
    if (at != tail.size()) parsed.rate = tail.substr(at + 1);
    parsed.name = item.substr(0, item.size() - (tail.size() - at));
    tail = tail.substr(0, at);
    if (tail.starts_with('/')) {
        const std::string_view digits = tail.substr(1, tail.find(':') - 1);
        const auto length = parse_number(digits);
        if (!length || (*length != 1 && *length != 2 && *length != 4 && *length != 8))
            return bad(item, fmt::format("the length '{}' is not 1, 2, 4 or 8", digits));
        breakpoint.length = static_cast<std::uint32_t>(*length);
        tail.remove_prefix(1 + digits.size());
    }
    std::string_view access;
    while (!tail.empty()) {
        const std::string_view group = tail.substr(1, tail.find(':', 1) - 1);
        tail.remove_prefix(1 + group.size());
        const bool is_access = consists_of(group, "rwx");
        std::string_view& into = is_access ? access : parsed.modifiers;
        if ((!is_access && !consists_of(group, "uk")) || !into.empty())
            return bad(item, fmt::format("'{}' is neither an access (r, w, x) nor a mode (u, k)", group));
        into = group;
    }
    for (const char letter : access.empty() ? "rw" : access)
        breakpoint.access |= letter == 'r' ? HW_BREAKPOINT_R : letter == 'w' ? HW_BREAKPOINT_W : HW_BREAKPOINT_X;
    return true;
}

Result<bool> parse_place(BreakpointSpec& breakpoint, std::string_view item, std::string_view place) {
    if (place.starts_with("0x")) {
        const auto address = parse_number(place);
        if (!address) return bad(item, fmt::format("'{}' is not an address such as 0x7ffe1000", place));
        if (!breakpoint.file.empty()) return bad(item, "an address has no file; only a symbol has");
        breakpoint.address = *address;
        return true;
    }
    const std::size_t plus = place.rfind('+');
    if (plus != std::string_view::npos) {
        const auto offset = parse_number(place.substr(plus + 1));
        if (!offset) return bad(item, fmt::format("'{}' is not an offset", place.substr(plus)));
        breakpoint.address = *offset;
        place = place.substr(0, plus);
    }
    const bool name = !place.empty() && std::ranges::none_of(place, [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '*' || c == 0x7f;
    });
    if (!name || (place.front() >= '0' && place.front() <= '9'))
        return bad(item, "should look like mem:0xADDRESS/LENGTH:rw, or with a variable, mem:SYMBOL@\"FILE\":w");
    breakpoint.symbol = place;
    return true;
}

}  // namespace

bool is_breakpoint(std::string_view item) { return item.starts_with(prefix); }

Result<ParsedBreakpoint> parse_breakpoint(std::string_view item) {
    ParsedBreakpoint parsed;
    const std::string_view body = item.substr(prefix.size());
    std::size_t end = tail_begin(body);
    const std::string_view place = body.substr(0, end);
    // "@99" is a rate; anything else after @ is a file.
    std::string_view tail = body.substr(end);
    if (tail.starts_with("@\"")) {
        const std::size_t quote = tail.find('"', 2);
        if (quote == std::string_view::npos) return bad(item, "the file's closing quote is missing");
        parsed.breakpoint.file = tail.substr(2, quote - 2);
        tail.remove_prefix(quote + 1);
        if (parsed.breakpoint.file.empty()) return bad(item, "the file's name is missing");
    } else if (tail.starts_with('@') && !consists_of(tail.substr(1), "0123456789")) {
        const std::string_view file = tail.substr(1, tail.find_first_of("/:@", 1) - 1);
        if (file.empty()) return bad(item, "the file's name is missing");
        parsed.breakpoint.file = file;
        tail.remove_prefix(1 + file.size());
    }
    if (!tail.empty() && tail.front() != '/' && tail.front() != ':' && tail.front() != '@')
        return bad(item, fmt::format("'{}' after the file is not understood", tail));
    (void)TRY(parse_tail(parsed, item, tail));
    (void)TRY(parse_place(parsed.breakpoint, item, place));
    return parsed;
}

std::uint32_t default_breakpoint_length(std::uint32_t access) {
    // For code, kernels for x86 accept the size of long, and those for Arm the size of an instruction.
    return is_x86 && (access & HW_BREAKPOINT_X) != 0 ? std::uint32_t{sizeof(long)} : 4;
}

Result<EventPart> breakpoint_part(std::string_view name, std::uint64_t address, std::uint32_t length,
                                  std::uint32_t access, std::uint32_t pid) {
    const bool code = (access & HW_BREAKPOINT_X) != 0;
    if (code && access != HW_BREAKPOINT_X) return bad(name, "x cannot be combined with r and w; give two events");
    if (is_x86 && access == HW_BREAKPOINT_R) return bad(name, "this CPU cannot report reads alone; use rw");
    if (code && length != default_breakpoint_length(access))
        return bad(name, fmt::format("a breakpoint on code has the length {} here", default_breakpoint_length(access)));
    if (!code && address % length != 0)
        return bad(name, fmt::format("the address {:#x} is not a multiple of the length {}", address, length));
    EventPart part;
    part.type = PERF_TYPE_BREAKPOINT;
    part.config = std::uint64_t{pid} << process_shift | access;
    part.config1 = address;
    part.config2 = length;
    return part;
}

bool is_kernel_address(std::uint64_t address) {
    // 32-bit processes of 64-bit Arm kernels see armv8l with personality(2) PER_LINUX32.
    const auto runs_64bit = [] {
        utsname names{};
        const std::string_view machine = ::uname(&names) == 0 ? names.machine : "";
        return machine.find("64") != std::string_view::npos || machine == "armv8l";
    };
    return is_kernel_address(address, sizeof(long) == 8 || runs_64bit());
}

bool is_breakpoint(const EventPart& part) { return part.type == PERF_TYPE_BREAKPOINT; }

bool is_breakpoint(const EventSpec& spec) {
    return spec.breakpoint || (!spec.parts.empty() && is_breakpoint(spec.parts.front()));
}

std::uint32_t process_of(const EventPart& part) {
    return is_breakpoint(part) ? static_cast<std::uint32_t>(part.config >> process_shift) : 0;
}

void replace_processes(EventSpec& spec, const std::vector<std::uint32_t>& kept, const std::vector<EventPart>& fresh) {
    if (spec.parts.empty() || process_of(spec.parts.front()) == 0) return;
    // An event without parts has no type.
    EventPart unused = spec.parts.front();
    unused.config = no_process << process_shift | (unused.config & access_bits);
    std::erase_if(spec.parts,
                  [&](const EventPart& part) { return std::ranges::find(kept, process_of(part)) == kept.end(); });
    spec.parts.insert(spec.parts.end(), fresh.begin(), fresh.end());
    if (spec.parts.empty()) spec.parts.push_back(std::move(unused));
}

// Intel SDM volume 3, 18.2 (debug exceptions): data breakpoints are traps, instruction breakpoints are faults. Arm
// reports both before the instruction.
bool reports_next_instruction(const EventPart& part) {
    return is_x86 && is_breakpoint(part) && (part.config & HW_BREAKPOINT_X) == 0;
}

void set_configuration(perf_event_attr& attr, const EventPart& part) {
    attr.type = part.type;
    attr.config1 = part.config1;
    attr.config2 = part.config2;
    if (is_breakpoint(part))
        attr.bp_type = static_cast<std::uint32_t>(part.config);
    else
        attr.config = part.config;
}

}  // namespace flamewire::agent
