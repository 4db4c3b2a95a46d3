#include "profile/formats/perf_data/perf_data_import.h"

#include <algorithm>
#include <utility>

#include "perf/abi.h"
#include "perf/decode.h"
#include "profile/formats/perf_data/deferred_samples.h"
#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/import_notes.h"
#include "profile/formats/perf_data/kernel.h"
#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/perf_maps.h"
#include "profile/formats/perf_data/processes.h"
#include "profile/formats/perf_data/record_reader.h"
#include "profile/formats/perf_data/sample.h"
#include "profile/formats/perf_data/stacks.h"

namespace flamewire::profile::perf_data {
namespace {

// Later than all clocks, and far from overflow.
constexpr std::int64_t far_ns = std::int64_t{1} << 61;

// The stack mode of the recording, with the agent's names.
std::string stack_mode(std::span<const RecordedEvent> events) {
    for (const RecordedEvent& one : events) {
        if (one.samples(perf::sample::stack_user)) return "dwarf";
        if (one.samples(perf::sample::branch_stack) && (one.branch_sample_type & perf::branch::call_stack) != 0)
            return "lbr";
        if (one.samples(perf::sample::callchain)) return "fp";
    }
    return "";
}

wire::Recording about_recording(const Header& header) {
    wire::Recording about;
    about.target = header.machine.command_line;
    about.host = header.machine.host;
    about.arch = header.machine.arch;
    about.kernel_release = header.machine.kernel_release;
    if (!header.machine.perf_version.empty()) about.agent_version = "perf " + header.machine.perf_version;
    about.cpus = header.machine.cpus;
    about.kernel = true;
    about.unwind = stack_mode(header.events);
    for (const RecordedEvent& one : header.events) {
        if (one.frequency && about.frequency_hz == 0)
            about.frequency_hz = static_cast<std::uint32_t>(std::min<std::uint64_t>(one.period_or_frequency, 1U << 30));
        if (!one.frequency && about.period == 0) about.period = one.period_or_frequency;
        about.stack_bytes = std::max(about.stack_bytes, one.sample_stack_user);
        about.max_depth = std::max(about.max_depth, one.sample_max_stack);
    }
    return about;
}

class Import {
public:
    Import(ImportJob& job, Header& header, RecordReader& reader)
        : job_(job),
          header_(header),
          reader_(reader),
          modules_(job, header.machine, !header.embedded.functions.empty()),
          processes_(modules_),
          kernel_(modules_),
          periods_(header, reader.ids()),
          perf_maps_(job, header.machine),
          stacks_(header, modules_, kernel_, perf_maps_),
          decoder_(header.order()) {}

    Result<bool> take(const Record& record);
    Result<bool> finish();

private:
    RecordingBuilder& builder(std::uint64_t time_ns);
    Result<bool> take_sample(const Record& record);
    Result<bool> take_deferred(const perf::DeferredCallchain& deferred);
    Result<bool> add_waiting(DeferredSamples::Waiting& waiting, std::span<const std::uint64_t> user);
    Result<bool> add_rows(wire::Row row, const std::vector<SamplePeriods::Part>& parts);
    Result<bool> give_up_waiting();
    void take(const perf::MmapRecord& map);
    void take(const perf::CommRecord& comm);
    void take(const perf::TaskRecord& task);
    void take(const perf::LostRecord& lost);
    void take(const perf::ThrottleRecord& throttle);
    void take(const perf::SwitchRecord& change);
    void take(const perf::KsymbolRecord& symbol);
    void add_loss(wire::LossReason reason, std::uint64_t count, std::uint64_t id, std::uint64_t time_ns);
    wire::Id announce(Process& process);
    wire::Id announce(Thread& thread, std::uint32_t tid);
    wire::Id event_of(std::uint16_t index);

    ImportJob& job_;
    Header& header_;
    RecordReader& reader_;
    Modules modules_;
    Processes processes_;
    Kernel kernel_;
    SamplePeriods periods_;
    PerfMaps perf_maps_;
    Stacks stacks_;
    RecordingBuilder* builder_ = nullptr;
    std::uint64_t start_ns_ = import_moment_ns;
    std::vector<wire::Id> events_;  // by index into Header::events; 0: not announced yet
    perf::Decoder decoder_;
    Sample sample_;
    DeferredSamples deferred_;
    perf::SideRecord side_record_;
    ImportCounts counts_;
};

// Records before the first sample or loss only describe state. The recording starts with that sample or loss.
RecordingBuilder& Import::builder(std::uint64_t time_ns) {
    if (builder_ != nullptr) return *builder_;
    const Machine& machine = header_.machine;
    if (time_ns != 0) start_ns_ = time_ns;
    if (machine.first_sample_ns != 0 && machine.first_sample_ns < start_ns_) start_ns_ = machine.first_sample_ns;
    wire::Recording about = about_recording(header_);
    about.start_ns = start_ns_;
    std::int64_t wall_ns = 0;
    if (machine.wall_ns > 0 && machine.wall_ns < far_ns && machine.wall_at_ns < std::uint64_t{far_ns})
        wall_ns = machine.wall_ns + static_cast<std::int64_t>(start_ns_ - machine.wall_at_ns);
    builder_ = &job_.begin(std::move(about), wall_ns);
    events_.resize(header_.events.size());
    return *builder_;
}

wire::Id Import::event_of(std::uint16_t index) {
    wire::Id& id = events_[index];
    const RecordedEvent& event = header_.events[index];
    if (id == 0) id = builder_->event(event.name, event.unit);
    return id;
}

wire::Id Import::announce(Process& process) {
    if (process.wire_id != 0) return process.wire_id;
    wire::Process about;
    about.pid = process.pid;
    about.parent_pid = process.parent_pid;
    about.start_time_ns = process.start_ns;
    about.exec_generation = process.executions;
    about.comm = builder_->string(process.comm);
    about.exe = builder_->string(process.exe);
    return process.wire_id = builder_->process(about);
}

wire::Id Import::announce(Thread& thread, std::uint32_t tid) {
    if (thread.wire_id != 0) return thread.wire_id;
    announce(processes_.process(thread.pid));
    return thread.wire_id = builder_->thread(thread.pid, tid, thread.comm);
}

Result<bool> Import::take_sample(const Record& record) {
    const RecordedEvent& event = header_.events[record.event];
    sample_.event = record.event;
    if (!decoder_.sample(record.misc, record.body, event.format(), sample_)) {
        ++counts_.broken_samples;
        return true;
    }
    RecordingBuilder& builder = this->builder(record.time_ns);
    const std::vector<SamplePeriods::Part>& parts = periods_.parts_of(sample_);
    if (parts.empty()) return true;
    Process& process = processes_.process(sample_.pid);
    Thread& thread = processes_.thread(sample_.pid, sample_.tid);
    wire::Row row;
    row.bucket = (record.time_ns != 0 ? record.time_ns : start_ns_) / wire::default_bucket_ns;
    row.thread = announce(thread, sample_.tid);
    row.cpu = sample_.cpu;
    row.count = 1;
    if (event.samples(perf::sample::raw)) ++counts_.raw_samples;
    if (!sample_.branches.empty() && (event.branch_sample_type & perf::branch::call_stack) == 0)
        ++counts_.branch_samples;
    if (const auto cookie = stacks_.deferred_cookie(sample_)) {
        deferred_.add(*cookie, sample_, row, parts);
        return deferred_.full() ? give_up_waiting() : Result<bool>(true);
    }
    row.stack = stacks_.stack_of(builder, sample_, process);
    return add_rows(row, parts);
}

Result<bool> Import::add_rows(wire::Row row, const std::vector<SamplePeriods::Part>& parts) {
    for (const SamplePeriods::Part& part : parts) {
        row.event = event_of(part.event);
        row.weight = part.period;
        TRY(builder_->add(row));
    }
    return true;
}

Result<bool> Import::take_deferred(const perf::DeferredCallchain& deferred) {
    constexpr std::size_t kernel_limit = 510;  // UNWIND_MAX_ENTRIES
    for (DeferredSamples::Waiting& one : deferred_.take(deferred.cookie)) {
        const bool cut = deferred.callchain.size() >= kernel_limit;
        one.sample.user_part = cut ? Sample::UserPart::deferred_cut : Sample::UserPart::deferred;
        TRY(add_waiting(one, deferred.callchain));
    }
    return true;
}

// The user part is looked up in the process's mappings now, when it was recorded.
Result<bool> Import::add_waiting(DeferredSamples::Waiting& waiting, std::span<const std::uint64_t> user) {
    std::vector<std::uint64_t> chain = std::move(waiting.callchain);
    if (!user.empty() && user.front() < perf::context::max) chain.push_back(perf::context::user);
    chain.insert(chain.end(), user.begin(), user.end());
    waiting.sample.callchain = chain;
    waiting.row.stack = stacks_.stack_of(*builder_, waiting.sample, processes_.process(waiting.sample.pid));
    return add_rows(waiting.row, waiting.parts);
}

Result<bool> Import::give_up_waiting() {
    for (DeferredSamples::Waiting& one : deferred_.take_all()) {
        one.sample.user_part = Sample::UserPart::missing;
        TRY(add_waiting(one, {}));
    }
    return true;
}

void Import::take(const perf::MmapRecord& map) {
    using perf::CpuMode;
    constexpr std::uint32_t nobody = 0xffffffff;
    if (map.cpu_mode == CpuMode::guest_kernel || map.cpu_mode == CpuMode::guest_user)
        ++counts_.guest_maps;
    else if (map.cpu_mode == CpuMode::kernel || (map.cpu_mode != CpuMode::user && map.pid == nobody))
        kernel_.map(map);
    else
        processes_.map(map);
}

// Records that perf synthesizes for running processes have no time and are not events.
void Import::take(const perf::CommRecord& comm) {
    processes_.name(comm);
    if (builder_ == nullptr || comm.time_ns == 0) return;
    wire::Lifecycle change{comm.exec ? wire::LifecycleKind::exec : wire::LifecycleKind::comm, comm.time_ns, 0, 0};
    change.thread = announce(processes_.thread(comm.pid, comm.tid), comm.tid);
    change.comm = builder_->string(comm.comm);
    builder_->lifecycle(change);
}

void Import::take(const perf::TaskRecord& task) {
    if (!task.exit) processes_.fork(task);
    if (builder_ == nullptr || task.time_ns == 0) return;
    wire::Lifecycle change{task.exit ? wire::LifecycleKind::exit : wire::LifecycleKind::fork, task.time_ns, 0, 0};
    change.thread = announce(processes_.thread(task.pid, task.tid), task.tid);
    builder_->lifecycle(change);
}

// A loss with an unknown id counts for no event.
void Import::add_loss(wire::LossReason reason, std::uint64_t count, std::uint64_t id, std::uint64_t time_ns) {
    RecordingBuilder& builder = this->builder(time_ns);
    const auto event = id != 0 ? reader_.ids().find(id) : std::nullopt;
    wire::Loss loss;
    loss.event = event ? event_of(*event) : 0;
    if (count == 0) return;
    loss.reason = reason;
    loss.count = count;
    loss.first_ns = loss.last_ns = time_ns != 0 ? time_ns : start_ns_;
    builder.loss(loss);
}

void Import::take(const perf::LostRecord& lost) {
    add_loss(wire::LossReason::ring_full, lost.count, lost.id, lost.time_ns);
}

void Import::take(const perf::ThrottleRecord& throttle) {
    if (!throttle.unthrottle) add_loss(wire::LossReason::throttled, 1, throttle.id, throttle.time_ns);
}

void Import::take(const perf::SwitchRecord& /*change*/) { ++counts_.other_types[perf::record::context_switch]; }

void Import::take(const perf::KsymbolRecord& symbol) {
    // Flamewire's own export has better names in embedded_symbols.
    if (header_.embedded.functions.empty()) kernel_.symbol(symbol);
}

Result<bool> Import::take(const Record& record) {
    if (record.type == perf::record::sample) return take_sample(record);
    if (record.type == perf::record::callchain_deferred) {
        const auto deferred = decoder_.deferred_callchain(record.body);
        return deferred ? take_deferred(*deferred) : Result<bool>(true);
    }
    const perf::RecordHeader about{record.type, record.misc, 0};
    const perf::Origin origin{.time_ns = record.time_ns};
    const perf::Decoded decoded = decoder_.side_record(about, record.body, origin, side_record_);
    if (decoded == perf::Decoded::skipped) ++counts_.other_types[record.type];
    if (decoded == perf::Decoded::ok) std::visit([&](const auto& side) { take(side); }, side_record_);
    return builder_ != nullptr ? builder_->give_if_enough() : Result<bool>(true);
}

Result<bool> Import::finish() {
    RecordingBuilder& builder = this->builder(0);
    TRY(give_up_waiting());
    kernel_.name(builder);
    counts_.unknown_ids = periods_.unknown_ids();
    counts_.kernel_base_missing = kernel_.base_missing();
    write_notes(builder, header_, reader_, stacks_.counts(), modules_, counts_);
    note_perf_maps(builder, perf_maps_);
    return true;
}

void name_events(Header& header) {
    for (RecordedEvent& event : header.events) name_event(event);
    if (header.embedded.events.size() != header.events.size()) return;
    for (std::size_t i = 0; i < header.events.size(); ++i) {
        if (header.embedded.events[i].name.empty()) continue;  // the file is damaged
        header.events[i].name = header.embedded.events[i].name;
        header.events[i].unit = header.embedded.events[i].unit;
    }
}

}  // namespace

bool recognises(std::string_view beginning) { return is_perf_data(beginning); }

Result<bool> import_perf_data(ImportJob& job) {
    Header header = TRY(read_header(job.source()));
    RecordReader reader(job.source(), header);
    TRY(reader.find_header_records());
    name_events(header);
    Import import(job, header, reader);
    TRY(reader.read([&](const Record& record) { return import.take(record); },
                    [&](std::uint64_t read_bytes) { job.progress(read_bytes); }));
    return import.finish();
}

}  // namespace flamewire::profile::perf_data
