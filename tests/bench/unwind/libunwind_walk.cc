#include "libunwind_walk.h"

#include <libunwind.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "elf/elf_file.h"
#include "unwind/walk/unwinder.h"

extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int,
                                                  void*);

namespace flamewire::bench {

namespace {

constexpr std::uint32_t segment_eh_frame = 0x6474e550;  // PT_GNU_EH_FRAME

struct Module {
    std::string bytes;
    std::vector<elf::Segment> loads;
    std::uint64_t eh_frame_hdr = 0;
    std::uint64_t entries = 0;
};

bool read_module(const Module& module, std::uint64_t address, unw_word_t& value) {
    for (const elf::Segment& load : module.loads)
        if (address - load.vaddr < load.file_size)
            return read_at(as_bytes_view(module.bytes), load.offset + (address - load.vaddr), value);
    return false;
}

Module load(unwind::ModuleFiles& files, unwind::ModuleId id) {
    constexpr std::size_t part = std::size_t{1} << 20;
    Module module;
    const Result<elf::ByteSource> source = files.open(id);
    if (!source) return module;
    const Result<elf::Header> header = elf::read_header(*source);
    if (!header) return module;
    while (const Result<std::string> bytes = (*source)(module.bytes.size(), part)) {
        module.bytes += *bytes;
        if (bytes->size() < part) break;
    }
    for (const elf::Segment& segment : header->segments) {
        if (segment.type == elf::segment_load) module.loads.push_back(segment);
        if (segment.type != segment_eh_frame) continue;
        std::uint32_t count = 0;
        if (!read_at(as_bytes_view(module.bytes), segment.offset + 8, count)) continue;
        module.eh_frame_hdr = segment.vaddr;
        module.entries = count;
    }
    return module;
}

}  // namespace

struct LibunwindWalk::State {
    unwind::ModuleFiles& files;
    std::unordered_map<unwind::ModuleId, Module> modules;
    const perf_data::Start* start = nullptr;
    unwind::CodeMap* map = nullptr;
    std::optional<unwind::CodePiece> last;
    const Module* last_module = nullptr;  // of `last`
    unw_accessors_t accessors{};
    unw_addr_space_t space = nullptr;

    const unwind::CodePiece* piece_at(std::uint64_t address) {
        if (!last || address - last->start >= last->end - last->start) {
            last = map->find(address);
            last_module = last && last->module != 0 ? &module_of(last->module) : nullptr;
        }
        return last ? &*last : nullptr;
    }
    const Module& module_of(unwind::ModuleId id) {
        const auto found = modules.find(id);
        return found != modules.end() ? found->second : modules.emplace(id, load(files, id)).first->second;
    }
};

namespace {

// The callbacks of libunwind. `Walk` is LibunwindWalk::State.
template <class Walk>
struct Accessors {
    static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t* found, int need, void* argument) {
        Walk& state = *static_cast<Walk*>(argument);
        const unwind::CodePiece* piece = state.piece_at(pc);
        if (piece == nullptr || state.last_module == nullptr || state.last_module->entries == 0) return -UNW_ENOINFO;
        const Module& module = *state.last_module;
        unw_dyn_info_t info{};
        info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
        info.start_ip = piece->start;
        info.end_ip = piece->end;
        info.u.rti.segbase = piece->bias + module.eh_frame_hdr;
        info.u.rti.table_data = info.u.rti.segbase + 12;
        info.u.rti.table_len = module.entries * 8 / sizeof(unw_word_t);
        return UNW_OBJ(dwarf_search_unwind_table)(space, pc, &info, found, need, argument);
    }

    static int access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* argument) {
        Walk& state = *static_cast<Walk*>(argument);
        const Bytes stack = state.start->stack.bytes;
        if (write == 0 && read_at(stack, address - state.start->stack.address, *value)) return 0;
        // Entries of the table are also read by word, so the address need not be in executable memory. It is nearly
        // always in the module of the last piece.
        if (write != 0 || state.last_module == nullptr) return -UNW_EINVAL;
        return read_module(*state.last_module, address - state.last->bias, *value) ? 0 : -UNW_EINVAL;
    }

    static int access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* argument) {
        const Walk& state = *static_cast<Walk*>(argument);
        if (write != 0 || number < 0 || number > UNW_TDEP_IP) return -UNW_EBADREG;
        *value = state.start->registers.get(static_cast<std::size_t>(number));
        return 0;
    }
};

}  // namespace

LibunwindWalk::LibunwindWalk(unwind::ModuleFiles& files) : state_(std::make_unique<State>(files)) {
    using Access = Accessors<State>;
    state_->accessors = {Access::find_proc_info,
                         [](unw_addr_space_t, unw_proc_info_t*, void*) {},
                         [](unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; },
                         Access::access_mem,
                         Access::access_reg,
                         [](unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; },
                         [](unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; },
                         nullptr};
    state_->space = unw_create_addr_space(&state_->accessors, 0);
    unw_set_caching_policy(state_->space, UNW_CACHE_GLOBAL);
}

LibunwindWalk::~LibunwindWalk() { unw_destroy_addr_space(state_->space); }

void LibunwindWalk::walk(const perf_data::Start& start, unwind::CodeMap& map, std::vector<std::uint64_t>& pcs) {
    state_->start = &start;
    state_->map = &map;
    state_->last.reset();
    state_->last_module = nullptr;
    pcs.clear();
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, state_->space, state_.get()) < 0) return;
    do {
        unw_word_t pc = 0;
        if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || pc == 0) break;
        pcs.push_back(pc);
    } while (pcs.size() < unwind::highest_max_depth && unw_step(&cursor) > 0);
}

}  // namespace flamewire::bench
