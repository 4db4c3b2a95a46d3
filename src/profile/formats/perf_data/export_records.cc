#include "profile/formats/perf_data/export_records.h"

#include <fmt/format.h>

#include "perf/abi.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

// The kernel range that the file announces, so that perf does not treat the addresses of names as the kernel of its own
// machine. No frame is in this range.
constexpr std::uint64_t kernel_start = 0xffff'ffff'8100'0000, kernel_size = 0x100'0000;
constexpr std::uint32_t kernel_pid = 0xffff'ffff;
constexpr std::uint32_t readable_code = 5, map_private = 2;  // PROT_READ | PROT_EXEC, MAP_PRIVATE
// A record has at most 65,535 bytes.
constexpr std::size_t longest_chain = 8000, longest_name = 32'000;

}  // namespace

void ExportRecords::put(std::uint32_t type, std::uint16_t misc, const Output& body) {
    const std::size_t filled = (body.size() + 7) & ~std::size_t{7};
    out_.u32(type).u16(misc).u16(static_cast<std::uint16_t>(perf::header_size + filled)).bytes(body.text());
    out_.bytes(std::string_view("\0\0\0\0\0\0\0", filled - body.size()));
}

// The sample_id_all trailer for the sample type of all our events: tid, time, cpu, identifier.
Output& ExportRecords::trailer(Output& body, std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns) const {
    return body.u32(pid).u32(tid).u64(time_ns).u32(0).u32(0).u64(1);
}

void ExportRecords::begin() {
    Output kernel;
    kernel.u32(kernel_pid).u32(0).u64(kernel_start).u64(kernel_size).u64(kernel_start).padded("[kernel.kallsyms]_text");
    put(perf::record::mmap, perf::misc::kernel, trailer(kernel, 0, 0, 0));
    std::unordered_map<std::string_view, std::size_t> same_name;
    for (const EmbeddedFunction& function : addresses_.functions()) ++same_name[function.name];
    for (const EmbeddedFunction& function : addresses_.functions()) {
        std::string name = function.name.substr(0, longest_name);
        // perf adds up frames with the same name.
        if (same_name[function.name] > 1 && !function.module.empty()) name += fmt::format(" [{}]", function.module);
        if (name.empty() || name.front() == '\0') name = "[unknown]";
        Output body;
        body.u64(function.address).u32(static_cast<std::uint32_t>(function.places.size()));
        body.u16(0).u16(0).padded(name);  // a type that the kernel does not have
        put(perf::record::ksymbol, 0, trailer(body, 0, 0, 0));
    }
}

void ExportRecords::task(std::uint32_t type, ThreadId thread, std::uint64_t time_ns) {
    const Thread& thread_info = tables_.threads[thread];
    const std::uint32_t parent =
        type == perf::record::fork ? tables_.processes[thread_info.process].wire.parent_pid : thread_info.pid;
    Output body;
    body.u32(thread_info.pid).u32(parent).u32(thread_info.tid).u32(parent).u64(time_ns);
    put(type, 0, trailer(body, thread_info.pid, thread_info.tid, time_ns));
}

void ExportRecords::fork(ThreadId thread, std::uint64_t time_ns) {
    task(perf::record::fork, thread, time_ns);
    named_.erase(tables_.threads[thread].tid);
}
void ExportRecords::exit(ThreadId thread, std::uint64_t time_ns) { task(perf::record::exit, thread, time_ns); }

void ExportRecords::lost(EventId event, std::uint64_t count, std::uint64_t time_ns) {
    Output body;
    body.u64(event).u64(count);
    put(perf::record::lost, 0, trailer(body, 0, 0, time_ns));
}

void ExportRecords::name(ThreadId thread, std::uint64_t time_ns) {
    const Thread& thread_info = tables_.threads[thread];
    const auto [known, first] = named_.try_emplace(thread_info.tid, thread);
    if (!first && known->second == thread) return;
    known->second = thread;
    // Another process with the same pid: its mappings are gone.
    const auto [process, first_process] = processes_.try_emplace(thread_info.pid, thread_info.process);
    const bool exec = !first_process && process->second != thread_info.process;
    process->second = thread_info.process;
    if (exec) std::erase_if(mapped_, [&](std::uint64_t one) { return one >> 32 == thread_info.process; });
    Output body;
    body.u32(thread_info.pid).u32(thread_info.tid).padded(thread_info.comm);
    put(perf::record::comm, exec ? perf::misc::comm_exec : std::uint16_t{0},
        trailer(body, thread_info.pid, thread_info.tid, time_ns));
}

void ExportRecords::map(ThreadId thread, ModuleId module, std::uint64_t time_ns) {
    const Thread& thread_info = tables_.threads[thread];
    if (!mapped_.insert(std::uint64_t{thread_info.process} << 32 | module).second) return;
    const ExportedArea& area = addresses_.area_of(module);
    const symbol::ModuleIdentity& identity = tables_.modules[module].identity;
    constexpr std::size_t longest_id = 20, longest_path = 4096;
    const std::string id = identity.build_id.substr(0, longest_id);
    Output body;
    body.u32(thread_info.pid).u32(thread_info.tid).u64(area.start).u64(area.end - area.start).u64(area.file_offset);
    if (!id.empty())
        body.u8(static_cast<std::uint8_t>(id.size()))
            .u8(0)
            .u16(0)
            .bytes(id)
            .bytes(std::string(longest_id - id.size(), '\0'));
    else
        body.u32(0).u32(0).u64(0).u64(0);  // device, inode, generation: unknown
    body.u32(readable_code).u32(map_private).padded(identity.path.substr(0, longest_path));
    put(perf::record::mmap2,
        static_cast<std::uint16_t>(perf::misc::user | (id.empty() ? 0 : perf::misc::mmap_build_id)),
        trailer(body, thread_info.pid, thread_info.tid, time_ns));
}

void ExportRecords::find_chain(StackId stack) {
    if (stack == chain_of_ && stack != 0) return;
    chain_of_ = stack;
    frames_.clear();
    chain_.clear();
    for (; stack != 0; stack = tables_.stacks.parent(stack)) {
        const auto frames = addresses_.frames_of(tables_.stacks.label(stack));
        frames_.insert(frames_.end(), frames.begin(), frames.end());
    }
    if (frames_.size() > longest_chain / 2) {
        // Each frame may need a marker before it.
        frames_.resize(longest_chain / 2);
        frames_.push_back({addresses_.truncated(), 0});
    }
    std::uint64_t context = 0;
    for (const ExportedFrame& frame : frames_) {
        const std::uint64_t wanted = frame.module == 0 ? perf::context::kernel : perf::context::user;
        if (wanted != context) chain_.push_back(context = wanted);
        chain_.push_back(frame.address);
    }
}

void ExportRecords::sample(const ExportedSample& sample) {
    name(sample.thread, sample.time_ns);
    find_chain(sample.stack);
    for (const ExportedFrame& frame : frames_)
        if (frame.module != 0) map(sample.thread, frame.module, sample.time_ns);
    const Thread& thread_info = tables_.threads[sample.thread];
    Output body;
    body.u64(sample.event).u64(frames_.empty() ? 0 : frames_.front().address).u32(thread_info.pid).u32(thread_info.tid);
    body.u64(sample.time_ns).u32(sample.cpu).u32(0).u64(sample.period).u64(chain_.size());
    for (const std::uint64_t entry : chain_) body.u64(entry);
    put(perf::record::sample, !frames_.empty() && frames_.front().module == 0 ? perf::misc::kernel : perf::misc::user,
        body);
}

void ExportRecords::round() { put(tool_record::finished_round, 0, {}); }

}  // namespace flamewire::profile::perf_data
