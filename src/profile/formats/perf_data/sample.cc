#include "profile/formats/perf_data/sample.h"

#include <bit>

#include "base/byte_reader.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

void read_values(ByteReader& fields, std::uint64_t format, std::vector<CounterValue>& values) {
    const bool group = (format & read_format::group) != 0;
    std::uint64_t count = group ? fields.u64() : 1;
    const auto times = [&] {
        if ((format & read_format::time_enabled) != 0) fields.skip(8);
        if ((format & read_format::time_running) != 0) fields.skip(8);
    };
    if (group) times();
    for (; count != 0 && fields.ok(); --count) {
        CounterValue value;
        value.value = fields.u64();
        if (!group) times();
        if ((format & read_format::id) != 0) value.id = fields.u64();
        if ((format & read_format::lost) != 0) fields.skip(8);
        values.push_back(value);
    }
}

void read_branches(ByteReader& fields, std::uint64_t kind, std::vector<unwind::Branch>& branches) {
    const std::uint64_t count = fields.u64();
    if ((kind & branch::hardware_index) != 0) fields.skip(8);
    if (count > fields.remaining() / branch::entry_size) return fields.fail();
    branches.resize(static_cast<std::size_t>(count));
    for (unwind::Branch& one : branches) {
        one.from = fields.u64();
        one.to = fields.u64();
        fields.skip(8);  // flags
    }
    if ((kind & branch::counters) != 0) fields.skip(count * 8);
}

void read_stack(ByteReader& fields, Sample& sample) {
    const std::uint64_t size = fields.u64();
    if (size == 0) return;
    const Bytes room = fields.bytes(size);
    // The bytes after the copied part belong to an earlier record.
    const std::uint64_t copied = fields.u64();
    if (!fields.ok()) return;
    sample.stack = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(copied, room.size())));
    sample.stack_cut = sample.stack.size() == room.size();
}

}  // namespace

bool parse_sample(const Header& header, const Record& record, Sample& sample) {
    const Attribute& attribute = header.attributes[record.attribute];
    ByteReader fields(record.body, header.order());
    sample.attribute = record.attribute;
    sample.misc = record.misc;
    sample.ip = sample.time_ns = sample.id = sample.registers_abi = 0;
    sample.pid = sample.tid = sample.cpu = 0;
    sample.values.clear();
    sample.callchain.clear();
    sample.branches.clear();
    sample.registers.clear();
    sample.stack = {};
    sample.stack_cut = false;

    if (attribute.samples(sample::identifier)) sample.id = fields.u64();
    if (attribute.samples(sample::ip)) sample.ip = fields.u64();
    if (attribute.samples(sample::tid)) {
        sample.pid = fields.u32();
        sample.tid = fields.u32();
    }
    if (attribute.samples(sample::time)) sample.time_ns = fields.u64();
    if (attribute.samples(sample::address)) fields.skip(8);
    if (attribute.samples(sample::id)) sample.id = fields.u64();
    if (attribute.samples(sample::stream_id)) fields.skip(8);
    if (attribute.samples(sample::cpu)) {
        sample.cpu = fields.u32();
        fields.skip(4);
    }
    sample.period = attribute.samples(sample::period) ? fields.u64() : attribute.usual_period();
    if (attribute.samples(sample::read)) read_values(fields, attribute.read_format, sample.values);
    if (attribute.samples(sample::callchain)) fields.words(fields.u64(), sample.callchain);
    if (attribute.samples(sample::raw)) fields.skip(fields.u32());
    if (attribute.samples(sample::branch_stack)) read_branches(fields, attribute.branch_sample_type, sample.branches);
    if (attribute.samples(sample::regs_user)) {
        sample.registers_abi = fields.u64();
        if (sample.registers_abi != 0)
            fields.words(static_cast<std::uint64_t>(std::popcount(attribute.sample_regs_user)), sample.registers);
    }
    if (attribute.samples(sample::stack_user)) read_stack(fields, sample);
    return fields.ok();
}

const std::vector<SamplePeriods::Part>& SamplePeriods::parts_of(const Sample& sample) {
    const Attribute& attribute = header_.attributes[sample.attribute];
    parts_.clear();
    if (!attribute.samples(sample::read) || (attribute.read_format & read_format::id) == 0) {
        parts_.push_back({sample.attribute, sample.period});
        return parts_;
    }
    for (const CounterValue& value : sample.values) {
        const auto event = ids_.find(value.id);
        if (!event) {
            ++unknown_ids_;
            continue;
        }
        std::uint64_t& before = seen_[{value.id, attribute.inherit ? sample.tid : 0}];
        const std::uint64_t period = value.value - before;
        before = value.value;
        if (period != 0) parts_.push_back({*event, period});
    }
    return parts_;
}

}  // namespace flamewire::profile::perf_data
