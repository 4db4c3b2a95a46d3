#include "profile/formats/perf_data/side_records.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

// The size of `fixed` bytes followed by a text, padded with NULs to a multiple of 8.
std::size_t with_text(Bytes body, std::size_t fixed) {
    if (body.size() <= fixed) return body.size();
    const std::size_t length = as_text(body.subspan(fixed)).find('\0');
    if (length == std::string_view::npos) return body.size();
    return (fixed + length + 1 + 7) & ~std::size_t{7};
}

}  // namespace

std::size_t own_size(const Header& header, const Record& record) {
    switch (record.type) {
        case record::mmap:
            return with_text(record.body, 32);
        case record::mmap2:
            return with_text(record.body, 64);
        case record::comm:
            return with_text(record.body, 8);
        case record::ksymbol:
            return with_text(record.body, 16);
        case record::cgroup:
            return with_text(record.body, 8);
        case record::fork:
        case record::exit:
        case record::throttle:
        case record::unthrottle:
        case record::aux:
            return 24;
        case record::lost:
        case record::bpf_event:
            return 16;
        case record::namespaces: {
            ByteReader fields(record.body, header.order());
            fields.skip(8);
            const std::uint64_t count = fields.u64();
            return count > record.body.size() / 16 ? record.body.size() : 16 + static_cast<std::size_t>(count) * 16;
        }
        case record::lost_samples:
        case record::itrace_start:
        case record::context_cpu_wide:
            return 8;
        default:
            return 0;
    }
}

std::optional<Mapping> parse_mapping(const Header& header, const Record& record) {
    ByteReader fields(record.body, header.order());
    Mapping mapping;
    const std::uint16_t mode = record.misc & misc::cpu_mode;
    mapping.pid = fields.u32();
    mapping.tid = fields.u32();
    mapping.start = fields.u64();
    mapping.size = fields.u64();
    mapping.offset = fields.u64();
    mapping.guest = mode == misc::guest_kernel || mode == misc::guest_user;
    constexpr std::uint32_t nobody = 0xffffffff;
    mapping.kernel = mode == misc::kernel || (mode != misc::user && mapping.pid == nobody);
    if (record.type == record::mmap) {
        mapping.executable = (record.misc & misc::mmap_data) == 0;
    } else {
        constexpr std::uint32_t executable = 4;  // PROT_EXEC
        if ((record.misc & misc::mmap_build_id) != 0) {
            const std::size_t size = fields.u8();
            fields.skip(3);
            mapping.build_id = as_text(fields.bytes(20)).substr(0, std::min<std::size_t>(size, 20));
        } else {
            fields.skip(8);  // device
            mapping.inode = fields.u64();
            fields.skip(8);  // generation
        }
        mapping.executable = (fields.u32() & executable) != 0;
        fields.skip(4);  // flags
    }
    if (!fields.ok()) return std::nullopt;
    mapping.path = fields.text();
    return mapping;
}

std::optional<Comm> parse_comm(const Header& header, const Record& record) {
    ByteReader fields(record.body, header.order());
    Comm comm;
    comm.exec = (record.misc & misc::comm_exec) != 0;
    comm.pid = fields.u32();
    comm.tid = fields.u32();
    if (!fields.ok()) return std::nullopt;
    comm.comm = fields.text();
    return comm;
}

std::optional<Task> parse_task(const Header& header, const Record& record) {
    ByteReader fields(record.body, header.order());
    Task task;
    task.pid = fields.u32();
    task.parent_pid = fields.u32();
    task.tid = fields.u32();
    task.parent_tid = fields.u32();
    task.with_maps = (record.misc & misc::fork_exec) == 0;
    if (!fields.ok()) return std::nullopt;
    return task;
}

std::optional<KernelSymbol> parse_kernel_symbol(const Header& header, const Record& record) {
    ByteReader fields(record.body, header.order());
    KernelSymbol symbol;
    symbol.address = fields.u64();
    symbol.size = fields.u32();
    fields.skip(2);  // BPF program or trampoline
    symbol.gone = (fields.u16() & 1) != 0;
    if (!fields.ok()) return std::nullopt;
    symbol.name = fields.text();
    return symbol;
}

std::optional<Loss> parse_loss(const Header& header, const Record& record) {
    ByteReader fields(record.body, header.order());
    Loss loss;
    if (record.type == record::lost) loss.id = fields.u64();
    loss.count = fields.u64();
    if (!fields.ok()) return std::nullopt;
    return loss;
}

}  // namespace flamewire::profile::perf_data
