// The messages of docs/wire.proto as fields, for the encoder and the decoder of batches. A message of columns is a
// struct of its own, with PackedColumn when it is written and Column when it was read.
#pragma once

#include "wire/batch.h"
#include "wire/proto.h"

namespace flamewire::wire {

template <class C>
struct LocationColumns {
    C module, address_delta, flags, name, file, line;
};

template <class C>
struct StackColumns {
    C parent_distance, location_back;
};

template <class C>
struct RowColumns {
    std::uint64_t base_bucket = 0;
    std::uint32_t bucket_ns = default_bucket_ns, bucket_span = 0;
    C group_event, group_thread, group_cpu, group_rows;
    C key_delta, count, weight;  // count: absent if all are 1
};

template <class C>
struct CounterColumns {
    std::uint64_t start_ns = 0, end_ns = 0;
    bool after_gap = false;
    C name, unit, part, thread, cpu_plus_1, status, value, enabled_ns, running_ns;
};

template <class C>
struct HitColumns {
    Id event = 0;
    std::uint32_t fields = 0;
    std::vector<std::string> texts;
    std::uint64_t dropped = 0;
    C time_delta, thread, cpu, stack, weight, values, address_delta, location;
};

template <class C>
struct DurationColumns {
    std::uint64_t sum_ns = 0, min_ns = 0, max_ns = 0;
    C bucket_delta, count;
};

// Defined in batch_encode.cc.
LocationColumns<proto::PackedColumn> columns_of(const std::vector<Location>& locations);
CounterColumns<proto::PackedColumn> columns_of(const CounterReading& reading);
DurationColumns<proto::PackedColumn> columns_of(const Durations& durations);
HitColumns<proto::PackedColumn> columns_of(const Hits& hits);

// Defined in batch_decode.cc, like check().
void read_columns(proto::pbf_reader in, std::vector<Location>& locations);
void read_columns(proto::pbf_reader in, CounterReading& reading);
void read_columns(proto::pbf_reader in, Durations& durations);
void read_columns(proto::pbf_reader in, Hits& hits);
void check(const Event& event);
void check(const ThreadTimes& times);

// Lifecycle events of later versions have this kind until they are left out.
inline constexpr LifecycleKind unknown_lifecycle{255};
inline bool is_known(const Lifecycle& lifecycle) { return lifecycle.kind != unknown_lifecycle; }

// A table of an epoch in a batch: the id of its first entry, and its entries. The id is sent only with entries.
template <class Entries>
struct Table {
    proto::Tag base_tag;
    Id Batch::* base;
    proto::Tag tag;
    Entries Batch::* entries;
};

// The fields of the start of a batch, which BatchHeader shares.
template <class Header>
inline constexpr std::tuple header_fields{proto::Field{1, &Header::recording_id}, proto::Field{2, &Header::epoch},
                                          proto::Field{3, &Header::seq}, proto::Field{4, &Header::first_seq}};

template <class Member>
constexpr proto::Field<Member> list(proto::Tag tag, Member member) {
    return {tag, member, max_batch_entries};
}
template <class Member>
constexpr proto::Field<Member> column(proto::Tag tag, Member member) {
    return {tag, member, max_batch_rows};
}
template <class Member>
constexpr proto::Field<Member> sparse_column(proto::Tag tag, Member member) {
    return {tag, member, max_batch_rows, true};
}

template <class Member>
constexpr proto::Field<Member> hit_column(proto::Tag tag, Member member, bool sparse = false) {
    return {tag, member, max_batch_hits, sparse};
}

inline constexpr std::tuple batch_fields =
    std::tuple_cat(header_fields<Batch>, std::tuple{proto::Field{5, &Batch::monotonic_ns},
                                                    proto::Field{6, &Batch::realtime_ns},
                                                    proto::Field{7, &Batch::recording},  //
                                                    Table{10, &Batch::string_base, 11, &Batch::strings},
                                                    Table{12, &Batch::module_base, 13, &Batch::modules},
                                                    Table{14, &Batch::location_base, 15, &Batch::locations},
                                                    Table{16, &Batch::stack_base, 17, &Batch::stacks},
                                                    Table{18, &Batch::process_base, 19, &Batch::processes},
                                                    Table{20, &Batch::thread_base, 21, &Batch::threads},
                                                    Table{22, &Batch::event_base, 23, &Batch::events},
                                                    proto::Field{30, &Batch::rows},
                                                    list(31, &Batch::lifecycle),
                                                    list(32, &Batch::losses),
                                                    list(33, &Batch::symbols),
                                                    list(34, &Batch::notices),
                                                    proto::Field{35, &Batch::agent},
                                                    proto::Field{36, &Batch::end},
                                                    list(37, &Batch::unwinds),
                                                    list(38, &Batch::counters),
                                                    list(39, &Batch::thread_times),
                                                    list(40, &Batch::hits)});

}  // namespace flamewire::wire

namespace flamewire::wire::proto {

template <>
struct EnumNumbers<ModuleKind> : NumbersUpTo<ModuleKind::jit> {};
template <>
struct EnumNumbers<LifecycleKind> : NumbersUpTo<LifecycleKind::comm, unknown_lifecycle> {};
template <>
struct EnumNumbers<FieldKind> : NumbersUpTo<FieldKind::bytes> {};
template <>
struct EnumNumbers<LossReason> : NumbersUpTo<LossReason::thread_state_unknown> {};
template <>
struct EnumNumbers<StackMode> : NumbersUpTo<StackMode::lbr> {};
template <>
struct EnumNumbers<CounterStatus> : NumbersUpTo<CounterStatus::forbidden, CounterStatus::not_counted> {};

template <>
inline constexpr std::tuple fields<Recording>{
    Field{1, &Recording::target},         list(2, &Recording::pids),
    Field{3, &Recording::host},           Field{4, &Recording::arch},
    Field{5, &Recording::kernel_release}, Field{6, &Recording::agent_version},
    Field{7, &Recording::boot_id},        Field{8, &Recording::frequency_hz},
    Field{9, &Recording::period},         Field{10, &Recording::effective_frequency_hz},
    Field{11, &Recording::unwind},        Field{12, &Recording::kernel},
    Field{13, &Recording::interval_ms},   Field{14, &Recording::start_ns},
    Field{15, &Recording::page_size},     Field{16, &Recording::cpus},
    Field{17, &Recording::stack_bytes},   Field{18, &Recording::max_depth},
    Field{19, &Recording::changed_ns},    Field{20, &Recording::gap_ns}};

template <>
inline constexpr std::tuple fields<Module>{
    Field{1, &Module::kind},  Field{2, &Module::path}, Field{3, &Module::build_id}, Field{4, &Module::device},
    Field{5, &Module::inode}, Field{6, &Module::size}, Field{7, &Module::mtime_ns}};

template <class C>
inline constexpr std::tuple fields<LocationColumns<C>>{
    column(1, &LocationColumns<C>::module),       column(2, &LocationColumns<C>::address_delta),
    sparse_column(3, &LocationColumns<C>::flags), sparse_column(4, &LocationColumns<C>::name),
    sparse_column(5, &LocationColumns<C>::file),  sparse_column(6, &LocationColumns<C>::line)};

template <class C>
inline constexpr std::tuple fields<StackColumns<C>>{column(1, &StackColumns<C>::parent_distance),
                                                    column(2, &StackColumns<C>::location_back)};

template <>
inline constexpr std::tuple fields<Process>{
    Field{1, &Process::pid},           Field{2, &Process::ns_pid},          Field{3, &Process::parent_pid},
    Field{4, &Process::start_time_ns}, Field{5, &Process::exec_generation}, Field{6, &Process::comm},
    Field{7, &Process::exe},           Field{8, &Process::command_line},    Field{9, &Process::cgroup},
    Field{10, &Process::container_id}};

template <>
inline constexpr std::tuple fields<Thread>{Field{1, &Thread::process}, Field{2, &Thread::tid}, Field{3, &Thread::comm}};

template <>
inline constexpr std::tuple fields<EventField>{Field{1, &EventField::name}, Field{2, &EventField::kind}};

template <>
inline constexpr std::tuple fields<Event>{Field{1, &Event::name},         Field{2, &Event::unit},
                                          Field{3, &Event::frequency_hz}, Field{4, &Event::period},
                                          Field{5, &Event::traced},       Field{6, &Event::fields, max_event_fields},
                                          Field{7, &Event::print_format}};

template <class C>
inline constexpr std::tuple fields<HitColumns<C>>{Field{1, &HitColumns<C>::event},
                                                  Field{2, &HitColumns<C>::fields},
                                                  Field{3, &HitColumns<C>::texts, max_batch_hits},
                                                  Field{4, &HitColumns<C>::dropped},
                                                  hit_column(5, &HitColumns<C>::time_delta),
                                                  hit_column(6, &HitColumns<C>::thread),
                                                  hit_column(7, &HitColumns<C>::cpu),
                                                  hit_column(8, &HitColumns<C>::stack),
                                                  hit_column(9, &HitColumns<C>::weight, true),
                                                  Field{10, &HitColumns<C>::values, max_batch_hits* max_event_fields},
                                                  hit_column(11, &HitColumns<C>::address_delta),
                                                  hit_column(12, &HitColumns<C>::location)};

template <class C>
inline constexpr std::tuple fields<RowColumns<C>>{
    Field{1, &RowColumns<C>::base_bucket},   Field{2, &RowColumns<C>::bucket_ns},
    Field{3, &RowColumns<C>::bucket_span},   column(4, &RowColumns<C>::group_event),
    column(5, &RowColumns<C>::group_thread), column(6, &RowColumns<C>::group_cpu),
    column(7, &RowColumns<C>::group_rows),   column(8, &RowColumns<C>::key_delta),
    sparse_column(9, &RowColumns<C>::count), sparse_column(10, &RowColumns<C>::weight)};

template <>
inline constexpr std::tuple fields<Lifecycle>{Field{1, &Lifecycle::kind}, Field{2, &Lifecycle::time_ns},
                                              Field{3, &Lifecycle::thread}, Field{4, &Lifecycle::comm}};

template <>
inline constexpr std::tuple fields<Loss>{Field{1, &Loss::reason},  Field{2, &Loss::count}, Field{3, &Loss::first_ns},
                                         Field{4, &Loss::last_ns}, Field{5, &Loss::event}, Field{6, &Loss::cpu_plus_1}};

template <>
inline constexpr std::tuple fields<Symbol>{Field{1, &Symbol::module}, Field{2, &Symbol::address},
                                           Field{3, &Symbol::size}, Field{4, &Symbol::name}};

template <>
inline constexpr std::tuple fields<Notice>{Field{1, &Notice::code}, Field{2, &Notice::text}, Field{3, &Notice::remedy}};

template <>
inline constexpr std::tuple fields<ProcessUnwind>{
    Field{1, &ProcessUnwind::process},   Field{2, &ProcessUnwind::mode},        Field{3, &ProcessUnwind::why},
    Field{4, &ProcessUnwind::samples},   Field{5, &ProcessUnwind::whole},       Field{6, &ProcessUnwind::joined},
    Field{7, &ProcessUnwind::truncated}, Field{8, &ProcessUnwind::open_end},    Field{9, &ProcessUnwind::stopped},
    Field{10, &ProcessUnwind::frames},   Field{11, &ProcessUnwind::stack_bytes}};

template <class C>
inline constexpr std::tuple fields<CounterColumns<C>>{
    Field{1, &CounterColumns<C>::start_ns},       Field{2, &CounterColumns<C>::end_ns},
    Field{3, &CounterColumns<C>::after_gap},      column(4, &CounterColumns<C>::name),
    column(5, &CounterColumns<C>::unit),          sparse_column(6, &CounterColumns<C>::part),
    sparse_column(7, &CounterColumns<C>::thread), sparse_column(8, &CounterColumns<C>::cpu_plus_1),
    sparse_column(9, &CounterColumns<C>::status), column(10, &CounterColumns<C>::value),
    column(11, &CounterColumns<C>::enabled_ns),   column(12, &CounterColumns<C>::running_ns)};

template <class C>
inline constexpr std::tuple fields<DurationColumns<C>>{
    Field{1, &DurationColumns<C>::sum_ns}, Field{2, &DurationColumns<C>::min_ns}, Field{3, &DurationColumns<C>::max_ns},
    column(4, &DurationColumns<C>::bucket_delta), column(5, &DurationColumns<C>::count)};

template <>
inline constexpr std::tuple fields<ThreadTimes>{Field{1, &ThreadTimes::thread},
                                                Field{2, &ThreadTimes::end_ns},
                                                Field{3, [](auto& times) -> auto& { return times.state_ns[0]; }},
                                                Field{4, [](auto& times) -> auto& { return times.state_ns[1]; }},
                                                Field{5, [](auto& times) -> auto& { return times.state_ns[2]; }},
                                                Field{6, [](auto& times) -> auto& { return times.state_ns[3]; }},
                                                Field{7, &ThreadTimes::preempted},
                                                Field{8, &ThreadTimes::slept},
                                                Field{9, &ThreadTimes::io_waits},
                                                Field{10, &ThreadTimes::slices},
                                                Field{11, &ThreadTimes::queued}};

template <>
inline constexpr std::tuple fields<AgentStats>{Field{1, &AgentStats::cpu_ns},
                                               Field{2, &AgentStats::rss_bytes},
                                               Field{3, &AgentStats::ring_bytes},
                                               Field{4, &AgentStats::samples_read},
                                               Field{5, &AgentStats::samples_duplicate},
                                               Field{6, &AgentStats::samples_lost},
                                               Field{7, &AgentStats::queue_batches},
                                               Field{8, &AgentStats::spool_bytes},
                                               Field{9, &AgentStats::late_records}};

template <>
inline constexpr std::tuple fields<End>{Field{1, &End::reason}, Field{2, &End::exit_code}};

}  // namespace flamewire::wire::proto
