// Writes to stdout, for each of some generated batches: one line of JSON with the input values, and the encoded
// bytes in hex. The values are written before encode() gets them. check.py compares them with protoc's output.
#include <cinttypes>
#include <cstdio>
#include <random>
#include <string>

#include "base/hex.h"
#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

std::string json;

void number(const char* name, std::uint64_t value) {
    json += '"' + std::string(name) + "\":" + std::to_string(value) + ',';
}
void hex(const char* name, std::string_view bytes) {
    json += '"' + std::string(name) + "\":\"" + to_hex(bytes) + "\",";
}
void open(const char* name, char bracket) {
    json += name[0] == '\0' ? std::string(1, bracket) : '"' + std::string(name) + "\":" + bracket;
}
void close(char bracket) {
    if (json.back() == ',') json.pop_back();
    json += bracket;
    json += ',';
}

void describe_tables(const Batch& batch) {
    open("strings", '[');
    for (const std::string& text : batch.strings) json += '"' + to_hex(text) + "\",";
    close(']');
    open("modules", '[');
    for (const Module& module : batch.modules) {
        open("", '{');
        number("kind", static_cast<std::uint64_t>(module.kind));
        number("path", module.path);
        hex("build_id", module.build_id);
        number("inode", module.inode);
        json += "\"mtime_ns\":" + std::to_string(module.mtime_ns) + ',';
        close('}');
    }
    close(']');
    open("locations", '[');
    for (const Location& l : batch.locations) {
        open("", '[');
        for (const std::uint64_t value :
             {std::uint64_t{l.module}, l.address, std::uint64_t{l.flags}, std::uint64_t{l.name}, std::uint64_t{l.line}})
            json += std::to_string(value) + ',';
        close(']');
    }
    close(']');
    open("stacks", '[');
    for (const StackNode& node : batch.stacks)
        json += '[' + std::to_string(node.parent) + ',' + std::to_string(node.location) + "],";
    close(']');
}

void describe(const Batch& batch) {
    open("", '{');
    hex("recording_id", {reinterpret_cast<const char*>(batch.recording_id.data()), batch.recording_id.size()});
    number("epoch", batch.epoch);
    number("seq", batch.seq);
    number("first_seq", batch.first_seq);
    number("monotonic_ns", batch.monotonic_ns);
    json += "\"realtime_ns\":" + std::to_string(batch.realtime_ns) + ',';
    number("location_base", batch.location_base);
    number("stack_base", batch.stack_base);
    describe_tables(batch);
    open("periods", '[');
    for (const Event& event : batch.events) json += std::to_string(event.period) + ',';
    close(']');
    open("rows", '[');
    for (const Row& r : batch.rows) {
        open("", '[');
        for (const std::uint64_t value : {std::uint64_t{r.event}, std::uint64_t{r.thread}, std::uint64_t{r.cpu},
                                          std::uint64_t{r.stack}, r.bucket, std::uint64_t{r.count}, r.weight})
            json += std::to_string(value) + ',';
        close(']');
    }
    close(']');
    open("losses", '[');
    for (const Loss& loss : batch.losses)
        json += '[' + std::to_string(static_cast<int>(loss.reason)) + ',' + std::to_string(loss.count) + ',' +
                std::to_string(loss.cpu_plus_1) + "],";
    close(']');
    open("unwinds", '[');
    for (const ProcessUnwind& unwind : batch.unwinds) {
        open("", '{');
        number("process", unwind.process);
        number("mode", static_cast<std::uint64_t>(unwind.mode));
        hex("why", unwind.why);
        number("samples", unwind.samples);
        number("whole", unwind.whole);
        number("joined", unwind.joined);
        number("truncated", unwind.truncated);
        number("open_end", unwind.open_end);
        number("stopped", unwind.stopped);
        number("frames", unwind.frames);
        number("stack_bytes", unwind.stack_bytes);
        close('}');
    }
    close(']');
    if (batch.recording) {
        hex("unwind", batch.recording->unwind);
        number("stack_bytes", batch.recording->stack_bytes);
        number("max_depth", batch.recording->max_depth);
    }
    if (batch.agent) number("agent_cpu_ns", batch.agent->cpu_ns);
    if (batch.end) {
        hex("end_reason", batch.end->reason);
        json += "\"exit_code\":" + std::to_string(batch.end->exit_code) + ',';
    }
    close('}');
    json.pop_back();
}

Batch make(std::mt19937_64& random, std::uint64_t seq) {
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    const auto id = [&](std::uint64_t limit) { return static_cast<Id>(random() % limit); };
    Batch batch;
    for (std::uint8_t& byte : batch.recording_id) byte = static_cast<std::uint8_t>(random() | 1U);
    batch.epoch = 1 + id(4);
    batch.seq = seq;
    batch.first_seq = seq % 3 == 0 ? seq - below(seq) : 0;
    batch.monotonic_ns = random() >> below(40);
    batch.realtime_ns = static_cast<std::int64_t>(random() >> 4) * (seq % 2 == 0 ? 1 : -1);
    for (std::uint64_t n = below(5); n-- > 0;) batch.strings.push_back("s\"\\\xc3\xbc\x01" + std::to_string(random()));
    for (std::uint64_t n = below(4); n-- > 0;) {
        Module module;
        module.kind = static_cast<ModuleKind>(below(4));
        module.path = id(9);
        const std::uint64_t id_size =
            below(21);  // each draw is a separate statement, so that the batches are the same everywhere
        module.build_id = std::string(id_size, static_cast<char>(random()));
        module.inode = random();
        module.mtime_ns = -static_cast<std::int64_t>(random() >> 1);
        batch.modules.push_back(module);
    }
    batch.location_base = 1 + id(300);
    const bool named = below(2) != 0;
    for (std::uint64_t n = below(30); n-- > 0;)
        batch.locations.push_back({id(4), random() >> below(60), id(8), named ? id(5) : 0, 0, named ? id(70000) : 0});
    batch.stack_base = 1 + id(100000);
    for (std::uint64_t n = below(40); n-- > 0;)
        batch.stacks.push_back(
            {id(batch.stack_base + batch.stacks.size()), 1 + id(batch.location_base + batch.locations.size() + 3)});
    batch.events = {{1, 2, 999, 1'001'001}, {3, 2, 0, 7}};
    const std::uint64_t now = below(std::uint64_t{1} << 40);
    const std::uint64_t counts = below(2) != 0 ? 5 : 1;
    for (std::uint64_t n = below(300); n-- > 0;) {
        Row row{now + below(26), 1 + id(2), id(3), id(4), id(5000), static_cast<std::uint32_t>(1 + below(counts)), 0};
        row.weight = row.count * batch.events[row.event - 1].period + (seq % 2 == 0 ? below(100) : 0);
        batch.rows.push_back(row);
    }
    for (std::uint64_t n = below(3); n-- > 0;)
        batch.losses.push_back({static_cast<LossReason>(below(10)), random(), 1, 2, 0, id(5)});
    for (std::uint64_t n = below(3); n-- > 0;)
        batch.unwinds.push_back({id(5), static_cast<StackMode>(below(4)), "\"why\" " + std::to_string(random()),
                                 random(), random() >> below(60), random() >> below(60), below(3), below(3), below(3),
                                 random(), random() >> below(60)});
    if (seq % 4 == 0) {
        batch.recording = Recording{};
        batch.recording->unwind = "auto";
        batch.recording->stack_bytes = id(65529);
        batch.recording->max_depth = id(4097);
    }
    if (seq % 2 == 0) batch.agent = AgentStats{1 + below(1U << 30), 0, 0, 0, 0, 0, 0, 0, 0};
    if (seq % 5 == 0) batch.end = End{"target exited", static_cast<std::int32_t>(below(300)) - 150};
    return batch;
}

}  // namespace

int main() {
    std::mt19937_64 random(20);
    for (std::uint64_t seq = 1; seq <= 40; ++seq) {
        Batch batch = make(random, seq);
        json.clear();
        describe(batch);
        const std::string bytes = encode(batch, {0, batch.events[0].period, batch.events[1].period});
        std::printf("%s\n%s\n", json.c_str(), to_hex(bytes).c_str());
    }
    return 0;
}
