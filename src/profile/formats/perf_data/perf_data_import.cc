#include "profile/formats/perf_data/perf_data_import.h"

#include <algorithm>
#include <utility>

#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/import_notes.h"
#include "profile/formats/perf_data/kernel.h"
#include "profile/formats/perf_data/layout.h"
#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/perf_maps.h"
#include "profile/formats/perf_data/processes.h"
#include "profile/formats/perf_data/record_reader.h"
#include "profile/formats/perf_data/sample.h"
#include "profile/formats/perf_data/side_records.h"
#include "profile/formats/perf_data/stacks.h"

namespace flamewire::profile::perf_data {
namespace {

// Later than all clocks, and far from overflow.
constexpr std::int64_t far_ns = std::int64_t{1} << 61;

// The stack mode of the recording, with the agent's names.
std::string stack_mode(std::span<const Attribute> attributes) {
    for (const Attribute& one : attributes) {
        if (one.samples(sample::stack_user)) return "dwarf";
        if (one.samples(sample::branch_stack) && (one.branch_sample_type & branch::call_stack) != 0) return "lbr";
        if (one.samples(sample::callchain)) return "fp";
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
    about.unwind = stack_mode(header.attributes);
    for (const Attribute& one : header.attributes) {
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
    Import(ImportJob& job, Header& header)
        : job_(job),
          header_(header),
          ids_(header.attributes),
          modules_(job, header.machine, !header.told.functions.empty()),
          processes_(modules_),
          kernel_(modules_),
          periods_(header),
          perf_maps_(job, header.machine),
          stacks_(header, modules_, kernel_, perf_maps_) {}

    Result<bool> take(const Record& record);
    Result<bool> finish(const RecordReader& reader);

private:
    RecordingBuilder& builder(std::uint64_t time_ns);
    Result<bool> take_sample(const Record& record);
    void take_mapping(const Mapping& mapping);
    void take_comm(const Comm& comm, std::uint64_t time_ns);
    void take_task(const Task& task, bool exit, std::uint64_t time_ns);
    void take_loss(const Record& record, const Loss& loss);
    wire::Id announce(Process& process);
    wire::Id announce(Thread& thread, std::uint32_t tid);
    wire::Id event_of(std::uint16_t attribute);

    ImportJob& job_;
    Header& header_;
    EventIds ids_;
    Modules modules_;
    Processes processes_;
    Kernel kernel_;
    SamplePeriods periods_;
    PerfMaps perf_maps_;
    Stacks stacks_;
    RecordingBuilder* builder_ = nullptr;
    std::uint64_t start_ns_ = import_moment_ns;
    std::vector<wire::Id> events_;  // by attribute; 0: not announced yet
    Sample sample_;
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
    events_.resize(header_.attributes.size());
    return *builder_;
}

wire::Id Import::event_of(std::uint16_t attribute) {
    wire::Id& event = events_[attribute];
    const Attribute& about = header_.attributes[attribute];
    if (event == 0) event = builder_->event(about.name, about.unit);
    return event;
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
    if (!parse_sample(header_, record, sample_)) {
        ++counts_.broken_samples;
        return true;
    }
    RecordingBuilder& builder = this->builder(record.time_ns);
    const Attribute& attribute = header_.attributes[sample_.attribute];
    const std::vector<SamplePeriods::Part>& parts = periods_.parts_of(sample_);
    if (parts.empty()) return true;
    Process& process = processes_.process(sample_.pid);
    Thread& thread = processes_.thread(sample_.pid, sample_.tid);
    wire::Row row;
    row.bucket = (record.time_ns != 0 ? record.time_ns : start_ns_) / wire::default_bucket_ns;
    row.thread = announce(thread, sample_.tid);
    row.cpu = sample_.cpu;
    row.stack = stacks_.stack_of(builder, sample_, process);
    row.count = 1;
    if (attribute.samples(sample::raw)) ++counts_.raw_samples;
    if (!sample_.branches.empty() && (attribute.branch_sample_type & branch::call_stack) == 0) ++counts_.branch_samples;
    for (const SamplePeriods::Part& part : parts) {
        row.event = event_of(part.attribute);
        row.weight = part.period;
        TRY(builder.add(row));
    }
    return true;
}

void Import::take_mapping(const Mapping& mapping) {
    if (mapping.guest) {
        ++counts_.guest_maps;
    } else if (mapping.kernel) {
        kernel_.map(mapping);
    } else {
        processes_.map(mapping);
    }
}

// Records that perf synthesizes for running processes have no time and are not events.
void Import::take_comm(const Comm& comm, std::uint64_t time_ns) {
    processes_.name(comm, time_ns);
    if (builder_ == nullptr || time_ns == 0) return;
    wire::Lifecycle change{comm.exec ? wire::LifecycleKind::exec : wire::LifecycleKind::comm, time_ns, 0, 0};
    change.thread = announce(processes_.thread(comm.pid, comm.tid), comm.tid);
    change.comm = builder_->string(comm.comm);
    builder_->lifecycle(change);
}

void Import::take_task(const Task& task, bool exit, std::uint64_t time_ns) {
    if (!exit) processes_.fork(task, time_ns);
    if (builder_ == nullptr || time_ns == 0) return;
    wire::Lifecycle change{exit ? wire::LifecycleKind::exit : wire::LifecycleKind::fork, time_ns, 0, 0};
    change.thread = announce(processes_.thread(task.pid, task.tid), task.tid);
    builder_->lifecycle(change);
}

void Import::take_loss(const Record& record, const Loss& loss) {
    RecordingBuilder& builder = this->builder(record.time_ns);
    wire::Loss lost;
    const bool throttled = record.type == record::throttle;
    lost.reason = throttled ? wire::LossReason::throttled : wire::LossReason::ring_full;
    lost.count = throttled ? 1 : loss.count;
    lost.first_ns = lost.last_ns = record.time_ns != 0 ? record.time_ns : start_ns_;
    if (const auto event = ids_.find(loss.id); event && record.type == record::lost) lost.event = event_of(*event);
    if (lost.count != 0) builder.loss(lost);
}

Result<bool> Import::take(const Record& record) {
    switch (record.type) {
        case record::sample:
            return take_sample(record);
        case record::mmap:
        case record::mmap2:
            if (const auto mapping = parse_mapping(header_, record)) take_mapping(*mapping);
            break;
        case record::comm:
            if (const auto comm = parse_comm(header_, record)) take_comm(*comm, record.time_ns);
            break;
        case record::fork:
        case record::exit:
            if (const auto task = parse_task(header_, record))
                take_task(*task, record.type == record::exit, record.time_ns);
            break;
        case record::ksymbol:
            if (!header_.told.functions.empty()) break;  // Flamewire's own export has better names in told_names
            if (const auto symbol = parse_kernel_symbol(header_, record)) kernel_.symbol(*symbol);
            break;
        case record::lost:
        case record::lost_samples:
        case record::throttle:
            if (const auto loss = parse_loss(header_, record)) take_loss(record, *loss);
            break;
        default:
            ++counts_.other_types[record.type];
            break;
    }
    return builder_ != nullptr ? builder_->give_if_enough() : Result<bool>(true);
}

Result<bool> Import::finish(const RecordReader& reader) {
    RecordingBuilder& builder = this->builder(0);
    kernel_.name(builder);
    counts_.unknown_ids = periods_.unknown_ids();
    counts_.kernel_base_missing = kernel_.base_missing();
    write_notes(builder, header_, reader, stacks_.counts(), modules_, counts_);
    note_perf_maps(builder, perf_maps_);
    return true;
}

void name_events(Header& header) {
    for (Attribute& attribute : header.attributes) name_event(attribute);
    if (header.told.events.size() != header.attributes.size()) return;
    for (std::size_t i = 0; i < header.attributes.size(); ++i) {
        if (header.told.events[i].name.empty()) continue;  // the file is damaged
        header.attributes[i].name = header.told.events[i].name;
        header.attributes[i].unit = header.told.events[i].unit;
    }
}

}  // namespace

bool recognises(std::string_view beginning) { return is_perf_data(beginning); }

Result<bool> import_perf_data(ImportJob& job) {
    Header header = TRY(read_header(job.source()));
    RecordReader reader(job.source(), header);
    TRY(reader.find_header_records());
    name_events(header);
    Import import(job, header);
    TRY(reader.read([&](const Record& record) { return import.take(record); },
                    [&](std::uint64_t read_bytes) { job.progress(read_bytes); }));
    return import.finish(reader);
}

}  // namespace flamewire::profile::perf_data
