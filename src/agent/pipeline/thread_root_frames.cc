#include "agent/pipeline/thread_root_frames.h"

#include <algorithm>
#include <cstring>

#include "agent/process/proc_text.h"
#include "agent/process/process_memory.h"
#include "base/file.h"
#include "base/id_table.h"
#include "base/result.h"

namespace flamewire::agent {
namespace {

// For example _start, __libc_start_main, __libc_start_call_main; or clone3, start_thread.
constexpr std::size_t most_frames = 4;
constexpr std::size_t most_tails = 4096;
// Each reads the mappings and a part of the stack, in about 0.2 ms.
constexpr unsigned reads_per_second = 50;
constexpr std::uint64_t second_ns = 1'000'000'000;
// Above the outermost frame: environment and arguments of a program, thread-local storage of a thread.
constexpr std::uint64_t most_stack_bytes = std::uint64_t{512} << 10;
constexpr unsigned most_candidates = 16;

std::uint64_t word_at(Bytes bytes, std::size_t offset, std::size_t word) {
    std::uint64_t value = 0;
    if (word == 4) {
        std::uint32_t half = 0;
        std::memcpy(&half, bytes.data() + offset, sizeof half);
        value = half;
    } else {
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    }
    return value;
}

}  // namespace

std::size_t ThreadRootFrames::KeyHash::operator()(const Key& key) const {
    return static_cast<std::size_t>(mix_in(mix_in(0, key.space), key.return_address));
}

void ThreadRootFrames::record(std::uint64_t space, const std::vector<unwind::Frame>& frames) {
    std::size_t last_safe = frames.size();
    while (last_safe > 0 && !frames[last_safe - 1].frame_pointer_safe) --last_safe;
    // The last safe frame returns to frames[last_safe]. The tail starts after that frame.
    if (last_safe == 0 || last_safe >= frames.size() || frames.size() - last_safe - 1 > most_frames) return;
    if (root_frames_.size() >= most_tails) root_frames_.clear();
    const auto [place, fresh] = root_frames_.try_emplace(Key{space, frames[last_safe].pc});
    Tail& tail = place->second;
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(last_safe) + 1;
    const auto same = [](const unwind::Frame& frame, std::uint64_t address) { return frame.pc == address; };
    if (fresh || (tail.addresses.empty() && !tail.ambiguous)) {
        for (auto frame = begin; frame != frames.end(); ++frame) tail.addresses.push_back(frame->pc);
    } else if (!std::equal(begin, frames.end(), tail.addresses.begin(), tail.addresses.end(), same)) {
        tail.ambiguous = true;
        tail.addresses.clear();
    }
}

ThreadRootFrames::Answer ThreadRootFrames::find(std::uint64_t space, std::uint32_t pid, unwind::Arch arch,
                                                std::uint64_t return_address, std::uint64_t stack_pointer,
                                                unwind::CodeMap& map, std::uint64_t now_ns,
                                                std::vector<unwind::Frame>& frames) {
    const Key key{space, return_address};
    auto known = root_frames_.find(key);
    if (known == root_frames_.end()) {
        if (stack_pointer == 0) return Answer::none;
        if (now_ns - window_ns_ >= second_ns) {
            window_ns_ = now_ns;
            reads_ = 0;
        }
        if (reads_ == reads_per_second) return Answer::later;
        ++reads_;
        if (root_frames_.size() >= most_tails) root_frames_.clear();
        known = root_frames_.try_emplace(key, Tail{read(pid, arch, return_address, stack_pointer, map), false}).first;
    }
    if (known->second.addresses.empty()) return Answer::none;
    for (const std::uint64_t address : known->second.addresses) {
        unwind::Frame frame;
        frame.pc = address;
        frame.found_by = unwind::FoundBy::chain;
        frame.return_address = true;
        frames.push_back(frame);
    }
    return Answer::found;
}

std::vector<std::uint64_t> ThreadRootFrames::read(std::uint32_t pid, unwind::Arch arch, std::uint64_t return_address,
                                                  std::uint64_t stack_pointer, unwind::CodeMap& map) {
    std::vector<std::uint64_t> addresses;
    const unwind::RegisterNames& names = unwind::register_names(arch);
    const std::size_t word = names.word_size;
    const std::uint64_t end = end_of_area(proc_root_, pid, stack_pointer);
    std::uint64_t start = stack_pointer & ~std::uint64_t{word - 1};
    if (end <= start) return addresses;
    start = std::max(start, end - std::min(end, most_stack_bytes));
    const auto memory = open_read(proc_path(proc_root_, pid, "mem"));
    if (!memory) return addresses;
    const auto text = read_range(memory->get(), start, static_cast<std::size_t>(end - start));
    if (!text) return addresses;

    const Bytes bytes = as_bytes_view(*text);
    unsigned candidates = 0;
    for (std::size_t offset = bytes.size() / word * word; offset >= word && candidates < most_candidates;) {
        offset -= word;
        if (word_at(bytes, offset, word) != return_address) continue;
        ++candidates;
        unwind::Registers registers(arch);
        registers.set(names.pc, return_address - 1);  // within the call instruction, to find its unwind row
        registers.set(names.sp, start + offset + word);
        const unwind::StackCopy stack{start + offset + word, bytes.subspan(offset + word), false};
        const auto stop = unwinder_.walk(registers, stack, map, most_frames + 2, scratch_);
        if (stop != unwind::StopReason::root || scratch_.size() < 2 || scratch_.size() > most_frames + 1) continue;
        for (std::size_t i = 1; i < scratch_.size(); ++i) addresses.push_back(scratch_[i].pc);
        break;
    }
    return addresses;
}

}  // namespace flamewire::agent
