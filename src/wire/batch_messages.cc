// One reader for each message of a batch that does not consist of columns.
#include <limits>

#include "wire/batch_read.h"

namespace flamewire::wire::read {

std::uint32_t narrow(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) throw Malformed{"a number is too large for its field"};
    return static_cast<std::uint32_t>(value);
}
std::uint32_t get_u32(pbf_reader& in) { return narrow(in.get_uint64()); }

std::string get_text(pbf_reader& in) {
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
}

Recording recording(pbf_reader in) {
    namespace f = field::recording;
    Recording recording;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::target):
                recording.target = get_text(in);
                break;
            case bytes(f::pids):
                for (const std::uint64_t pid : in.get_packed_uint64())
                    append(recording.pids, max_batch_entries) = narrow(pid);
                break;
            case bytes(f::host):
                recording.host = get_text(in);
                break;
            case bytes(f::arch):
                recording.arch = get_text(in);
                break;
            case bytes(f::kernel_release):
                recording.kernel_release = get_text(in);
                break;
            case bytes(f::agent_version):
                recording.agent_version = get_text(in);
                break;
            case bytes(f::boot_id):
                recording.boot_id = get_text(in);
                break;
            case varint(f::frequency_hz):
                recording.frequency_hz = get_u32(in);
                break;
            case varint(f::period):
                recording.period = in.get_uint64();
                break;
            case varint(f::effective_frequency_hz):
                recording.effective_frequency_hz = get_u32(in);
                break;
            case bytes(f::unwind):
                recording.unwind = get_text(in);
                break;
            case varint(f::kernel):
                recording.kernel = in.get_uint64() != 0;
                break;
            case varint(f::interval_ms):
                recording.interval_ms = get_u32(in);
                break;
            case varint(f::start_ns):
                recording.start_ns = in.get_uint64();
                break;
            case varint(f::page_size):
                recording.page_size = get_u32(in);
                break;
            case varint(f::cpus):
                recording.cpus = get_u32(in);
                break;
            case varint(f::stack_bytes):
                recording.stack_bytes = get_u32(in);
                break;
            case varint(f::max_depth):
                recording.max_depth = get_u32(in);
                break;
            case varint(f::changed_ns):
                recording.changed_ns = in.get_uint64();
                break;
            case varint(f::gap_ns):
                recording.gap_ns = in.get_uint64();
                break;
            default:
                in.skip();
        }
    }
    return recording;
}

Module module(pbf_reader in) {
    namespace f = field::module;
    Module module;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::kind): {
                const std::uint64_t kind = in.get_uint64();
                // Treat a kind of a later version as a file.
                module.kind = kind <= static_cast<std::uint64_t>(ModuleKind::jit) ? static_cast<ModuleKind>(kind)
                                                                                  : ModuleKind::file;
                break;
            }
            case varint(f::path):
                module.path = get_u32(in);
                break;
            case bytes(f::build_id):
                module.build_id = get_text(in);
                break;
            case varint(f::device):
                module.device = in.get_uint64();
                break;
            case varint(f::inode):
                module.inode = in.get_uint64();
                break;
            case varint(f::size):
                module.size = in.get_uint64();
                break;
            case varint(f::mtime_ns):
                module.mtime_ns = in.get_int64();
                break;
            default:
                in.skip();
        }
    }
    return module;
}

Process process(pbf_reader in) {
    namespace f = field::process;
    Process process;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::pid):
                process.pid = get_u32(in);
                break;
            case varint(f::ns_pid):
                process.ns_pid = get_u32(in);
                break;
            case varint(f::parent_pid):
                process.parent_pid = get_u32(in);
                break;
            case varint(f::start_time_ns):
                process.start_time_ns = in.get_uint64();
                break;
            case varint(f::exec_generation):
                process.exec_generation = get_u32(in);
                break;
            case varint(f::comm):
                process.comm = get_u32(in);
                break;
            case varint(f::exe):
                process.exe = get_u32(in);
                break;
            case varint(f::command_line):
                process.command_line = get_u32(in);
                break;
            case varint(f::cgroup):
                process.cgroup = get_u32(in);
                break;
            case varint(f::container_id):
                process.container_id = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    return process;
}

Thread thread(pbf_reader in) {
    namespace f = field::thread;
    Thread thread;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::process):
                thread.process = get_u32(in);
                break;
            case varint(f::tid):
                thread.tid = get_u32(in);
                break;
            case varint(f::comm):
                thread.comm = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    return thread;
}

Event event(pbf_reader in) {
    namespace f = field::event;
    Event event;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::name):
                event.name = get_u32(in);
                break;
            case varint(f::unit):
                event.unit = get_u32(in);
                break;
            case varint(f::frequency_hz):
                event.frequency_hz = get_u32(in);
                break;
            case varint(f::period):
                event.period = in.get_uint64();
                break;
            default:
                in.skip();
        }
    }
    return event;
}

void lifecycle(pbf_reader in, std::vector<Lifecycle>& list) {
    namespace f = field::lifecycle;
    Lifecycle lifecycle;
    bool known = true;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::kind): {
                const std::uint64_t kind = in.get_uint64();
                known = kind <= static_cast<std::uint64_t>(LifecycleKind::comm);
                if (known) lifecycle.kind = static_cast<LifecycleKind>(kind);
                break;
            }
            case varint(f::time_ns):
                lifecycle.time_ns = in.get_uint64();
                break;
            case varint(f::thread):
                lifecycle.thread = get_u32(in);
                break;
            case varint(f::comm):
                lifecycle.comm = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    if (known) append(list, max_batch_entries) = lifecycle;
}

Loss loss(pbf_reader in) {
    namespace f = field::loss;
    Loss loss;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::reason): {
                const std::uint64_t reason = in.get_uint64();
                loss.reason = reason <= static_cast<std::uint64_t>(LossReason::thread_state_unknown)
                                  ? static_cast<LossReason>(reason)
                                  : LossReason::unknown;
                break;
            }
            case varint(f::count):
                loss.count = in.get_uint64();
                break;
            case varint(f::first_ns):
                loss.first_ns = in.get_uint64();
                break;
            case varint(f::last_ns):
                loss.last_ns = in.get_uint64();
                break;
            case varint(f::event):
                loss.event = get_u32(in);
                break;
            case varint(f::cpu_plus_1):
                loss.cpu_plus_1 = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    return loss;
}

Symbol symbol(pbf_reader in) {
    namespace f = field::symbol;
    Symbol symbol;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::module):
                symbol.module = get_u32(in);
                break;
            case varint(f::address):
                symbol.address = in.get_uint64();
                break;
            case varint(f::size):
                symbol.size = in.get_uint64();
                break;
            case varint(f::name):
                symbol.name = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    return symbol;
}

Notice notice(pbf_reader in) {
    namespace f = field::notice;
    Notice notice;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::code):
                notice.code = get_text(in);
                break;
            case bytes(f::text):
                notice.text = get_text(in);
                break;
            case bytes(f::remedy):
                notice.remedy = get_text(in);
                break;
            default:
                in.skip();
        }
    }
    return notice;
}

ProcessUnwind process_unwind(pbf_reader in) {
    namespace f = field::process_unwind;
    ProcessUnwind unwind;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::process):
                unwind.process = get_u32(in);
                break;
            case varint(f::mode): {
                const std::uint64_t mode = in.get_uint64();
                unwind.mode =
                    mode <= static_cast<std::uint64_t>(StackMode::lbr) ? static_cast<StackMode>(mode) : StackMode::fp;
                break;
            }
            case bytes(f::why):
                unwind.why = get_text(in);
                break;
            case varint(f::samples):
                unwind.samples = in.get_uint64();
                break;
            case varint(f::whole):
                unwind.whole = in.get_uint64();
                break;
            case varint(f::joined):
                unwind.joined = in.get_uint64();
                break;
            case varint(f::truncated):
                unwind.truncated = in.get_uint64();
                break;
            case varint(f::open_end):
                unwind.open_end = in.get_uint64();
                break;
            case varint(f::stopped):
                unwind.stopped = in.get_uint64();
                break;
            case varint(f::frames):
                unwind.frames = in.get_uint64();
                break;
            case varint(f::stack_bytes):
                unwind.stack_bytes = in.get_uint64();
                break;
            default:
                in.skip();
        }
    }
    return unwind;
}

AgentStats agent(pbf_reader in) {
    namespace f = field::agent;
    AgentStats stats;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::cpu_ns):
                stats.cpu_ns = in.get_uint64();
                break;
            case varint(f::rss_bytes):
                stats.rss_bytes = in.get_uint64();
                break;
            case varint(f::ring_bytes):
                stats.ring_bytes = in.get_uint64();
                break;
            case varint(f::samples_read):
                stats.samples_read = in.get_uint64();
                break;
            case varint(f::samples_duplicate):
                stats.samples_duplicate = in.get_uint64();
                break;
            case varint(f::samples_lost):
                stats.samples_lost = in.get_uint64();
                break;
            case varint(f::queue_batches):
                stats.queue_batches = get_u32(in);
                break;
            case varint(f::spool_bytes):
                stats.spool_bytes = in.get_uint64();
                break;
            case varint(f::late_records):
                stats.late_records = get_u32(in);
                break;
            default:
                in.skip();
        }
    }
    return stats;
}

End end(pbf_reader in) {
    namespace f = field::end;
    End end;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::reason):
                end.reason = get_text(in);
                break;
            case varint(f::exit_code):
                end.exit_code = in.get_int32();
                break;
            default:
                in.skip();
        }
    }
    return end;
}

}  // namespace flamewire::wire::read
