// Prints the samples of a perf.data file as the importer reads them, before symbolization and address spaces.
// Usage: perf_data_dump FILE
//
// One line per sample, tab-separated: event, pid, tid, time in ns, cpu, period, ip, call chain without its markers
// (comma-separated, innermost first), branches (from>to, comma-separated). Damage of the file is printed last, after
// "damage: ". A file that cannot be read at all causes one sentence on stderr.
#include <fmt/format.h>

#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "perf/abi.h"
#include "perf/decode.h"
#include "profile/formats/perf_data/record_reader.h"
#include "profile/formats/perf_data/sample.h"

namespace {

using namespace flamewire;
using namespace flamewire::profile::perf_data;

class WholeFile final : public profile::ImportSource {
public:
    explicit WholeFile(std::string bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        if (offset >= bytes_.size()) return std::size_t{0};
        return bytes_.copy(into.data(), into.size(), offset);
    }

private:
    std::string bytes_;
};

void print(const Header& header, const Sample& sample, const SamplePeriods::Part& part) {
    fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{:x}\t", header.events[part.event].name, sample.pid, sample.tid, sample.time_ns,
               sample.cpu, part.period, sample.ip);
    const char* separator = "";
    for (const std::uint64_t address : sample.callchain) {
        if (address >= perf::context::max) continue;
        fmt::print("{}{:x}", separator, address);
        separator = ",";
    }
    fmt::print("\t");
    separator = "";
    for (const perf::BranchEntry& branch : sample.branches) {
        fmt::print("{}{:x}>{:x}", separator, branch.from, branch.to);
        separator = ",";
    }
    fmt::print("\n");
}

Result<bool> run(const std::string& path) {
    WholeFile file(TRY(read_file(path, std::size_t{4} << 30)));
    Header header = TRY(read_header(file));
    RecordReader reader(file, header);
    TRY(reader.find_header_records());
    for (RecordedEvent& event : header.events) name_event(event);
    SamplePeriods periods(header, reader.ids());
    Sample sample;
    perf::Decoder decoder(header.order());
    std::uint64_t broken = 0;
    const auto visit = [&](const Record& record) -> Result<bool> {
        if (record.type != perf::record::sample) return true;
        sample.event = record.event;
        if (!decoder.sample(record.misc, record.body, header.events[record.event].format(), sample)) {
            ++broken;
            return true;
        }
        for (const SamplePeriods::Part& part : periods.parts_of(sample)) print(header, sample, part);
        return true;
    };
    TRY(reader.read(visit, [](std::uint64_t) {}));
    if (broken != 0) fmt::print("damage: {} samples are broken\n", broken);
    if (reader.unknown_events() != 0) fmt::print("damage: {} samples of no event\n", reader.unknown_events());
    if (!reader.damage().empty()) fmt::print("damage: {}\n", reader.damage());
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: perf_data_dump FILE\n");
        return 2;
    }
    const Result<bool> outcome = run(argv[1]);
    if (!outcome) fmt::print(stderr, "perf_data_dump: {}\n", outcome.error().message);
    return outcome ? 0 : 1;
}
