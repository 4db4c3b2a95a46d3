#include "unwind/walk/libunwind_step.h"

#ifdef FLAMEWIRE_LIBUNWIND

#include <libunwind.h>

#include <array>
#include <cstring>
#include <span>

// Every libunwind exports this for external tools, but no libunwind header declares it.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int,
                                                  void*);

namespace flamewire::unwind {

namespace {

#if defined(__x86_64__)
constexpr Arch own_arch = Arch::x86_64;
#elif defined(__aarch64__)
constexpr Arch own_arch = Arch::aarch64;
#else
#error "libunwind is used on x86-64 and aarch64 only: configure with -DFLAMEWIRE_LIBUNWIND=OFF"
#endif
// On both architectures libunwind uses DWARF's register numbers, and the same number for pc as this library.
constexpr std::size_t own_registers = static_cast<std::size_t>(UNW_TDEP_IP) + 1;

// Addresses of modules in libunwind: above all user addresses, 2^40 bytes per id.
constexpr std::uint64_t modules_begin = std::uint64_t{1} << 63;
constexpr unsigned module_bits = 40;
constexpr std::uint64_t module_size = std::uint64_t{1} << module_bits;
// Each byte of a table costs a call of access_mem().
constexpr std::uint64_t work_of_read = 16;

// One call of step().
struct Call {
    const Registers& registers;
    ModuleTables& module;
    const MemoryReader& read;
    TableWork& work;
    std::uint64_t base;  // the module's address in libunwind
    std::uint64_t pc;    // likewise
    bool in_table = false;
    bool no_table = false;
};

Call& call_of(void* argument) { return *static_cast<Call*>(argument); }

bool in_module(const Call& call, std::uint64_t address) {
    return address >= call.base && address - call.base < module_size;
}

// The table in the format that linkers write: sdata4 relative to the section, count as udata4.
std::optional<unw_dyn_info_t> table_of(const Call& call) {
    const std::uint64_t header = call.module.eh_frame_hdr();
    std::array<std::byte, 12> bytes{};
    if (header == 0 || header >= module_size || !call.module.read(header, bytes)) return std::nullopt;
    constexpr std::array<std::byte, 4> expected{std::byte{1}, std::byte{0x1b}, std::byte{0x03}, std::byte{0x3b}};
    if (std::memcmp(bytes.data(), expected.data(), expected.size()) != 0) return std::nullopt;
    std::uint32_t count = 0;
    std::memcpy(&count, bytes.data() + 8, sizeof count);
    unw_dyn_info_t info{};
    info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    info.start_ip = call.base;
    info.end_ip = call.base + module_size;
    info.u.rti.segbase = call.base + header;
    info.u.rti.table_data = call.base + header + bytes.size();
    info.u.rti.table_len = std::uint64_t{count} * 8 / sizeof(unw_word_t);
    return info;
}

int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t* found, int need_unwind_info,
                   void* argument) {
    Call& call = call_of(argument);
    int outcome = -UNW_ENOINFO;
    if (in_module(call, pc)) {
        if (std::optional<unw_dyn_info_t> table = table_of(call)) {
            call.in_table = true;
            outcome = UNW_OBJ(dwarf_search_unwind_table)(space, pc, &*table, found, need_unwind_info, argument);
            call.in_table = false;
        }
    }
    // Without a table, libunwind continues by guessing.
    if (outcome < 0) call.no_table = true;
    return outcome;
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}

int get_dyn_info_list_addr(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

// libunwind reads whole aligned words, even if a segment ends within one. Missing bytes are zero.
int access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* argument) {
    const Call& call = call_of(argument);
    call.work.add(work_of_read);
    if (write != 0 || call.work.spent()) return -UNW_EINVAL;
    if (!in_module(call, address)) {
        const std::optional<std::uint64_t> word = call.read(address, sizeof(unw_word_t));
        if (!word) return -UNW_EINVAL;
        *value = static_cast<unw_word_t>(*word);
        return 0;
    }
    std::array<std::byte, sizeof(unw_word_t)> bytes{};
    const std::uint64_t start = address - call.base;
    if (!call.module.read(start, bytes)) {
        std::size_t there = 0;
        while (there < bytes.size() && call.module.read(start + there, std::span(bytes).subspan(there, 1))) ++there;
        // The only part of a table in writable memory is the personality routine's address, which is never called.
        if (there == 0 && !call.in_table) return -UNW_EINVAL;
    }
    std::memcpy(value, bytes.data(), sizeof *value);
    return 0;
}

int access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* argument) {
    const Call& call = call_of(argument);
    if (write != 0 || number < 0) return -UNW_EREADONLYREG;
    if (number == UNW_TDEP_IP) {
        *value = static_cast<unw_word_t>(call.pc);
        return 0;
    }
    if (!call.registers.has(static_cast<std::size_t>(number))) return -UNW_EBADREG;
    *value = static_cast<unw_word_t>(call.registers.get(static_cast<std::size_t>(number)));
    return 0;
}

int access_fpreg(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }

int resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }

}  // namespace

struct LibunwindStep::State {
    unw_accessors_t accessors{
        find_proc_info, put_unwind_info, get_dyn_info_list_addr, access_mem, access_reg, access_fpreg, resume, nullptr};
    unw_addr_space_t space = nullptr;

    State() {
        space = unw_create_addr_space(&accessors, 0);
        if (space != nullptr) unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
    }
    ~State() {
        if (space != nullptr) unw_destroy_addr_space(space);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
};

bool LibunwindStep::available(Arch arch) { return arch == own_arch; }

LibunwindStep::LibunwindStep() = default;
LibunwindStep::~LibunwindStep() = default;

std::optional<Registers> LibunwindStep::step(const Registers& registers, bool return_address, const CodePiece& piece,
                                             ModuleTables& module, const MemoryReader& read, TableWork& work) {
    const std::uint64_t address = CodeAddress{registers.pc() - piece.bias, return_address}.lookup();
    if (!available(registers.arch()) || module.arch() != own_arch || address >= module_size ||
        piece.module >= (modules_begin >> module_bits))
        return std::nullopt;
    // Created on first use, which usually never happens.
    if (!state_) state_ = std::make_unique<State>();
    if (state_->space == nullptr) return std::nullopt;

    const std::uint64_t base = modules_begin + (std::uint64_t{piece.module} << module_bits);
    Call call{.registers = registers, .module = module, .read = read, .work = work, .base = base, .pc = base + address};
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, state_->space, &call) < 0) return std::nullopt;
    const int stepped = unw_step(&cursor);
    if (stepped < 0 || call.no_table) return std::nullopt;

    Registers caller(own_arch);
    for (std::size_t number = 0; number < own_registers; ++number) {
        unw_word_t value = 0;
        if (number == static_cast<std::size_t>(UNW_TDEP_IP) && stepped == 0) continue;
        if (unw_get_reg(&cursor, static_cast<unw_regnum_t>(number), &value) < 0) continue;
        caller.set(number, in_module(call, value) ? value - base + piece.bias : value);
    }
    return caller;
}

}  // namespace flamewire::unwind

#else

namespace flamewire::unwind {

struct LibunwindStep::State {};

bool LibunwindStep::available(Arch) { return false; }

LibunwindStep::LibunwindStep() = default;
LibunwindStep::~LibunwindStep() = default;

std::optional<Registers> LibunwindStep::step(const Registers&, bool, const CodePiece&, ModuleTables&,
                                             const MemoryReader&, TableWork&) {
    return std::nullopt;
}

}  // namespace flamewire::unwind

#endif
