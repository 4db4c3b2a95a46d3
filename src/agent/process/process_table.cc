#include "agent/process/process_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "agent/process/code_cache.h"
#include "agent/process/kallsyms.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_records.h"
#include "agent/process/vdso.h"
#include "base/system.h"
#include "unwind/walk/trampoline.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_kernel_notes_bytes = 64 * 1024;
// The kernel's part of an exec takes less time.
constexpr std::uint64_t exec_tail_ns = 100'000'000;
// How long the JIT code of an ended process is still queried; then it is dropped.
constexpr std::uint64_t jit_patience_ns = 10'000'000'000, jit_sweep_pause_ns = 1'000'000'000;
// Samples are read from the rings long before they reach this age.
constexpr std::uint64_t sample_tail_ns = 1'000'000'000;
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

const ThreadInfo forgotten_thread;
const ProcessInfo forgotten_process;

std::uint64_t system_page_size() { return System::current().constant(Constant::page_bytes); }

}  // namespace

struct ProcessTable::State {
    explicit State(ProcessTableOptions options_in)
        : options(std::move(options_in)),
          modules(options.proc_root, system_page_size(), options.keep_files),
          jit(options.proc_root),
          backfill(options, registry, modules, jit),
          records(options, registry, modules, backfill) {}

    void read_kernel_base();
    const process::Mapping* find_mapping(ProcessState& process, std::uint64_t address);
    // The module for the code that the process generated.
    ModuleHandle jit_module_of(ProcessState& process);
    void apply_jit_names(std::uint64_t time_ns);

    const ProcessTableOptions options;
    ProcessRegistry registry;
    ModuleCache modules;
    JitNames jit;
    ProcessBackfill backfill;
    ProcessRecords records;
    CodeCache code_cache;
    std::uint64_t next_jit_sweep_ns = 0;
    std::uint64_t last_sample_ns = 0;
    std::vector<wire::Notice> notices;  // of the kernel's names

    bool kernel_read = false;
    bool kernel_hidden = false;
    std::uint64_t kernel_text = 0;  // the base of kernel addresses; 0: hidden
    std::optional<FunctionPass> kernel_pass;
    ModuleHandle kernel_module = 0;
};

ProcessTable::ProcessTable(ProcessTableOptions options) : state_(std::make_unique<State>(std::move(options))) {}
ProcessTable::~ProcessTable() = default;

void ProcessTable::attach(std::uint32_t pid) {
    const auto stat = read_stat(state_->options.proc_root, pid);
    if (!stat) return;
    ProcessState* known = state_->registry.by_pid(pid);
    if (known != nullptr && known->info.start_time_ns != ticks_to_ns(stat->start_ticks)) {
        known->ended_ns = 0;
        state_->registry.end_process(*known);
    }
    ProcessState& process = state_->backfill.ensure_process(pid, state_->options.monotonic_clock());
    state_->backfill.read_maps(process);
    state_->backfill.list_threads(process);
}

void ProcessTable::note_living() { state_->backfill.note_living(); }

void ProcessTable::distrust_all() { state_->registry.mark_all_suspect(); }

std::optional<ProcessTable::LifecycleEvent> ProcessTable::on_record(const TaskRecord& record) {
    const std::optional<LifecycleEvent> event =
        record.exit ? state_->records.on_exit(record) : state_->records.on_fork(record);
    state_->backfill.sweep();
    return event;
}

std::optional<ProcessTable::LifecycleEvent> ProcessTable::on_record(const CommRecord& record) {
    const std::optional<LifecycleEvent> event = state_->records.on_comm(record);
    state_->backfill.sweep();
    return event;
}

void ProcessTable::on_record(const MmapRecord& record) {
    state_->records.on_mmap2(record);
    state_->backfill.sweep();
}

void ProcessTable::on_record(const LostRecord& record) {
    state_->records.on_lost(record);
    state_->backfill.sweep();
}

ThreadHandle ProcessTable::thread_of(std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns) {
    ProcessRegistry& registry = state_->registry;
    state_->last_sample_ns = time_ns;
    if (state_->jit.is_due(time_ns)) state_->apply_jit_names(time_ns);
    const ThreadHandle known = registry.thread_by_tid(tid);
    if (known != 0) {
        ProcessState* process = registry.by_handle(registry.thread(known)->info.process);
        const bool usual = process != nullptr && process->info.pid == pid && !process->suspect && !process->ended &&
                           time_ns < process->retry_ns;
        if (usual) return known;
    }
    ProcessState* process = &state_->backfill.ensure_process(pid, time_ns);
    if (process->suspect) {
        state_->backfill.refresh(*process);
        process = &state_->backfill.ensure_process(pid, time_ns);
    }
    if (time_ns >= process->retry_ns) {
        process->retry_ns = never;
        process->space.forget_answers();
    }
    const ThreadHandle thread = state_->backfill.ensure_thread(*process, tid);
    return thread;
}

ThreadHandle ProcessTable::newest_thread(std::uint32_t pid, std::uint32_t tid) const {
    const ThreadHandle known = state_->registry.thread_by_tid(tid);
    if (known == 0) return 0;
    const ProcessState* process = state_->registry.by_handle(state_->registry.thread(known)->info.process);
    return process != nullptr && process->info.pid == pid ? known : 0;
}

ProcessHandle ProcessTable::newest(std::uint32_t pid) const {
    const ProcessState* process = state_->registry.by_pid(pid);
    return process == nullptr ? 0 : process->handle;
}

std::uint64_t ProcessTable::generation(ProcessHandle handle) const {
    const ProcessState* process = state_->registry.by_handle(handle);
    return process == nullptr ? 0 : process->space.generation();
}

bool ProcessTable::maps_known(ProcessHandle handle) const {
    const ProcessState* process = state_->registry.by_handle(handle);
    return process != nullptr && (process->maps_known || !process->space.map().mappings().empty());
}

const process::Mapping* ProcessTable::State::find_mapping(ProcessState& process, std::uint64_t address) {
    const process::Mapping* mapping = process.space.find(address);
    if (mapping == nullptr && process.before_exec) {
        mapping = process.before_exec->find(address);
        process.space.note_unknown_answer();  // a mapping that appears there is correct for later samples
        if (last_sample_ns > process.exec_ns + exec_tail_ns) {
            mapping = nullptr;
            process.before_exec.reset();
        }
    }
    if (mapping == nullptr && backfill.backfill(process, address)) mapping = process.space.find(address);
    if (mapping == nullptr) process.space.note_unknown_answer();
    return mapping;
}

std::optional<unwind::CodePiece> ProcessTable::code_at(ProcessHandle handle, std::uint64_t address) {
    ProcessState* process = state_->registry.by_handle(handle);
    const process::Mapping* mapping = process == nullptr ? nullptr : state_->find_mapping(*process, address);
    if (mapping == nullptr) return std::nullopt;
    return state_->modules.piece_at(*mapping, address);
}

std::optional<unwind::Rule> ProcessTable::code_rule(ProcessHandle handle, const unwind::CodePiece& piece,
                                                    unwind::Arch arch, CodeAddress address) {
    const ProcessState* process = state_->registry.by_handle(handle);
    if (process == nullptr) return std::nullopt;
    const auto written = state_->jit.rule_at(process->jit_module, arch, address.lookup());
    if (written) return written;
    const unwind::ArchInfo& info = unwind::arch_info(arch);
    if (info.trampoline_row == nullptr) return std::nullopt;
    const std::uint64_t pc = address.value;
    std::array<std::byte, unwind::max_trampoline_window> code;
    const std::uint64_t begin = std::max(piece.start, pc - std::min<std::uint64_t>(pc, info.trampoline_before));
    const std::uint64_t end = std::min(piece.end, pc + info.trampoline_after);
    if (pc < begin || end <= begin) return std::nullopt;
    const auto window = std::span(code).first(static_cast<std::size_t>(end - begin));
    if (!state_->code_cache.read(handle, process->ended ? 0 : process->info.pid, begin, state_->last_sample_ns, window))
        return std::nullopt;
    return unwind::trampoline_rule(window, static_cast<std::size_t>(pc - begin), address.return_address, info);
}

Result<elf::ByteSource> ProcessTable::open_file(ModuleHandle module) { return state_->modules.open_file(module); }

Result<UniqueFd> ProcessTable::duplicate_file(const FileIdentity& identity) {
    return state_->modules.duplicate_file(identity);
}

ResolvedAddress ProcessTable::resolve(ProcessHandle handle, std::uint64_t address) {
    ProcessState* process = state_->registry.by_handle(handle);
    const process::Mapping* mapping = process == nullptr ? nullptr : state_->find_mapping(*process, address);
    if (mapping == nullptr) return {0, address};
    if (mapping->module == 0) return {state_->jit_module_of(*process), address, true};
    const std::uint64_t offset = mapping->file_offset + (address - mapping->start);
    return {mapping->module, state_->modules.address_of(mapping->module, offset)};
}

ModuleHandle ProcessTable::State::jit_module_of(ProcessState& process) {
    if (process.jit_module != 0 && jit.has_room(process.jit_module)) return process.jit_module;
    const ModuleHandle old = process.jit_module;
    process.jit_module = modules.jit_code(process.info);
    if (process.jit_module == 0) return old;
    if (old != 0) jit.forget(old);
    // Cached results shared with a parent or child would refer to the code of that process.
    process.space.forget_answers();
    jit.add(backfill.describe_jit(process), process.handle);
    return process.jit_module;
}

void ProcessTable::State::apply_jit_names(std::uint64_t time_ns) {
    for (const ProcessHandle owner : jit.apply(time_ns))
        if (ProcessState* process = registry.by_handle(owner)) process->space.forget_answers();
}

std::optional<JitFunction> ProcessTable::jit_function(ModuleHandle module, std::uint64_t address) {
    return state_->jit.find(module, address, state_->last_sample_ns);
}

void ProcessTable::saw_unnamed_jit(ProcessHandle handle) {
    if (const ProcessState* process = state_->registry.by_handle(handle)) state_->jit.saw_unnamed(process->jit_module);
}

std::uint64_t ProcessTable::exchange_jit_names() {
    const std::uint64_t now = state_->options.monotonic_clock();
    const std::uint64_t known_until_ns = state_->jit.exchange(now);
    // A sleeping target sends no samples that would show the progress of time.
    if (const std::uint64_t read_ns = now - std::min(now, sample_tail_ns); state_->jit.is_due(read_ns))
        state_->apply_jit_names(read_ns);
    if (now < state_->next_jit_sweep_ns) return known_until_ns;
    state_->next_jit_sweep_ns = now + jit_sweep_pause_ns;
    for (const auto& [module, owner] : state_->jit.owners()) {
        const ProcessState* process = state_->registry.by_handle(owner);
        if (process == nullptr || (process->ended && now > process->ended_ns + jit_patience_ns))
            state_->jit.forget(module);
    }
    return known_until_ns;
}

void ProcessTable::settle_jit_names(std::uint64_t patience_ns) { state_->jit.settle(patience_ns); }

std::vector<TargetSymbol> ProcessTable::take_jit_symbols() { return state_->jit.take_symbols(); }

void ProcessTable::State::read_kernel_base() {
    kernel_read = true;
    const std::optional<KernelBase> table = agent::read_kernel_base(options.proc_root);
    const KernelBase base = table.value_or(KernelBase{});
    kernel_text = base.address;
    kernel_hidden = kernel_text == 0;
    std::string build_id;
    // Without a base the addresses are valid only for this boot: set no build-id, so that they are not resolved with a
    // vmlinux.
    if (auto problem = kernel_names_problem(table, options.proc_root)) {
        notices.push_back(*std::move(problem));
    } else if (!base.is_text) {
        // A vmlinux is relative to _text, but these addresses are not.
    } else if (const auto notes = read_head(options.sys_root + "/kernel/notes", max_kernel_notes_bytes)) {
        build_id = elf::build_id_of_notes(as_bytes_view(*notes), std::endian::native == std::endian::big);
    }
    kernel_module = modules.kernel(build_id);
}

ResolvedAddress ProcessTable::resolve_kernel(std::uint64_t address) {
    if (!state_->kernel_read) state_->read_kernel_base();
    return {state_->kernel_module, address - state_->kernel_text};
}

const ThreadInfo& ProcessTable::thread(ThreadHandle handle) const {
    const ThreadState* thread = state_->registry.thread(handle);
    return thread == nullptr ? forgotten_thread : thread->info;
}

const ProcessInfo& ProcessTable::process(ProcessHandle handle) const {
    const ProcessState* process = state_->registry.by_handle(handle);
    return process == nullptr ? forgotten_process : process->info;
}

const ModuleInfo& ProcessTable::module(ModuleHandle handle) const { return state_->modules.info(handle); }

std::vector<wire::Loss> ProcessTable::take_losses() { return state_->records.take_losses(); }

std::vector<wire::Notice> ProcessTable::take_notices() {
    std::vector<wire::Notice> notices = std::exchange(state_->notices, {});
    for (wire::Notice& notice : state_->backfill.take_notices()) notices.push_back(std::move(notice));
    for (wire::Notice& notice : state_->modules.take_notices()) notices.push_back(std::move(notice));
    for (wire::Notice& notice : state_->jit.take_notices()) notices.push_back(std::move(notice));
    return notices;
}

void ProcessTable::begin_kernel_symbols(std::vector<std::uint64_t> addresses) {
    if (!state_->kernel_read) state_->read_kernel_base();
    if (state_->kernel_hidden) return;
    for (std::uint64_t& address : addresses) address += state_->kernel_text;
    if (auto pass = FunctionPass::begin(state_->options.proc_root, std::move(addresses)))
        state_->kernel_pass = std::move(*pass);
}

bool ProcessTable::kernel_symbols_begun() const { return state_->kernel_pass.has_value(); }

std::vector<TargetSymbol> ProcessTable::advance_kernel_symbols(std::uint64_t deadline_ns) {
    std::vector<TargetSymbol> symbols;
    if (!state_->kernel_pass) return symbols;
    const auto at_end = state_->kernel_pass->advance(deadline_ns);
    if (at_end && !*at_end) return symbols;
    if (at_end)
        for (KernelFunction& function : state_->kernel_pass->functions())
            symbols.push_back({state_->kernel_module, function.address - state_->kernel_text, function.size,
                               std::move(function.name)});
    state_->kernel_pass.reset();
    return symbols;
}

std::vector<TargetSymbol> ProcessTable::vdso_symbols(ModuleHandle vdso) {
    std::vector<TargetSymbol> symbols;
    const Bytes image = state_->modules.vdso_image(vdso);
    if (image.empty()) return symbols;
    auto functions = vdso_functions(image);
    if (!functions) return symbols;
    for (VdsoSymbol& function : *functions)
        symbols.push_back({vdso, function.address, function.size, std::move(function.name)});
    return symbols;
}

}  // namespace flamewire::agent
