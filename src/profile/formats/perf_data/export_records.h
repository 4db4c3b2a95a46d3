// The records of an exported perf.data file in time order: tasks, mappings and samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profile/formats/perf_data/export_addresses.h"
#include "profile/formats/perf_data/output.h"
#include "profile/store/tables.h"

namespace flamewire::profile::perf_data {

struct ExportedSample {
    std::uint64_t time_ns = 0, period = 0;
    EventId event = 0;
    ThreadId thread = 0;
    std::uint32_t cpu = 0;
    StackId stack = 0;
};

class ExportRecords {
public:
    // `addresses` must be laid out. The id of an event in the file is its EventId.
    ExportRecords(const Store::Tables& tables, const ExportAddresses& addresses)
        : tables_(tables), addresses_(addresses) {}

    // Writes the records without a time: the kernel's mapping, and the names.
    void begin();
    void fork(ThreadId thread, std::uint64_t time_ns);
    void exit(ThreadId thread, std::uint64_t time_ns);
    void lost(EventId event, std::uint64_t count, std::uint64_t time_ns);
    void sample(const ExportedSample& sample);
    void round();  // all records after this one have later times

    [[nodiscard]] std::size_t size() const { return out_.size(); }
    std::string take() { return out_.take(); }

private:
    void put(std::uint32_t type, std::uint16_t misc, const Output& body);
    Output& trailer(Output& body, std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns) const;
    void task(std::uint32_t type, ThreadId thread, std::uint64_t time_ns);
    void name(ThreadId thread, std::uint64_t time_ns);
    void map(ThreadId thread, ModuleId module, std::uint64_t time_ns);
    void find_chain(StackId stack);

    const Store::Tables& tables_;
    const ExportAddresses& addresses_;
    Output out_;
    std::unordered_map<std::uint32_t, ThreadId> named_;       // by tid: from the last COMM record
    std::unordered_map<std::uint32_t, ProcessId> processes_;  // by pid: the last process
    std::unordered_set<std::uint64_t> mapped_;                // process << 32 | module
    StackId chain_of_ = 0;                                    // the stack that chain_ belongs to; 0: none
    std::vector<ExportedFrame> frames_;
    std::vector<std::uint64_t> chain_;  // with context markers
};

}  // namespace flamewire::profile::perf_data
