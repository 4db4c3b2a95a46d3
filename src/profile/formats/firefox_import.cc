// Tables stand in columns and in any order, so they wait as they are until all of the file is read.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "profile/formats/firefox.h"
#include "profile/formats/json_shape.h"
#include "profile/formats/timed_frames.h"

namespace flamewire::profile {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

enum Place : int {
    product = 1,
    start_time,
    library,
    library_path,
    library_name,
    library_id,
    thread,
    thread_name,
    thread_pid,
    thread_tid,
    thread_process,
    sample_stack,
    sample_time,
    sample_delta,
    sample_weight,
    weight_type,
    own_event,
    own_unit,
    own_comm,
    own_samples,
    own_weights,
    own_returns,
    prefix,
    frame,
    func,
    line,
    inline_depth,
    name,
    file,
    resource,
    resource_library,
    text,
};

const JsonShape& shape() {
    static const JsonShape places{
        {"meta.product", product},
        {"meta.startTime", start_time},
        {"libs[]", library},
        {"libs[].path", library_path},
        {"libs[].name", library_name},
        {"libs[].codeId", library_id},
        {"threads[]", thread},
        {"threads[].name", thread_name},
        {"threads[].pid", thread_pid},
        {"threads[].tid", thread_tid},
        {"threads[].processName", thread_process},
        {"threads[].samples.stack[]", sample_stack},
        {"threads[].samples.time[]", sample_time},
        {"threads[].samples.timeDeltas[]", sample_delta},
        {"threads[].samples.weight[]", sample_weight},
        {"threads[].samples.weightType", weight_type},
        {"threads[].flamewire.event", own_event},
        {"threads[].flamewire.unit", own_unit},
        {"threads[].flamewire.comm", own_comm},
        {"threads[].flamewire.samples[]", own_samples},
        {"threads[].flamewire.weights[]", own_weights},
        {"threads[].flamewire.returns[]", own_returns},
// Of a thread, or shared by all as newer versions have it.
#define FLAMEWIRE_TABLES(in)                                                                                        \
    {in ".stackTable.prefix[]", prefix}, {in ".stackTable.frame[]", frame}, {in ".frameTable.func[]", func},        \
        {in ".frameTable.line[]", line}, {in ".frameTable.inlineDepth[]", inline_depth},                            \
        {in ".funcTable.name[]", name}, {in ".funcTable.fileName[]", file}, {in ".funcTable.resource[]", resource}, \
        {in ".resourceTable.lib[]", resource_library}, {                                                            \
        in ".stringArray[]", text                                                                                   \
    }
        FLAMEWIRE_TABLES("threads[]"),
        FLAMEWIRE_TABLES("shared"),
#undef FLAMEWIRE_TABLES
    };
    return places;
}

struct Tables {
    std::vector<std::uint32_t> prefix, frame, func, line, inline_depth, name, file, resource, resource_library;
    std::vector<std::string> texts;
};
struct Library {
    std::string path, name, id;
};
struct ThreadColumns {
    Tables tables;
    std::string name, process, weight_type, own_event, own_unit, own_comm;
    std::uint32_t pid = 0, tid = 0;
    std::vector<std::uint32_t> stacks, own_returns;
    std::vector<double> times_ms, deltas_ms, weights, own_samples, own_weights;
};

class Collector final : public JsonSink {
public:
    bool begin(int place) override {
        if (place == Place::thread) {
            threads.emplace_back();
            in_thread_ = true;
        }
        if (place == Place::library) libraries.emplace_back();
        return true;
    }
    bool end(int place) override {
        if (place == Place::thread) in_thread_ = false;
        return true;
    }
    bool value(int place, const JsonValue& value) override {
        const auto id = [&] { return static_cast<std::uint32_t>(value.whole(none, none)); };
        // Ids of processes and threads are numbers or texts.
        const auto number = [&]() -> std::uint32_t {
            if (value.kind != JsonValue::Kind::text) return static_cast<std::uint32_t>(value.whole(none - 1, 0));
            std::uint64_t sum = 0;
            for (const char c : value.text) {
                if (c < '0' || c > '9') break;
                sum = sum * 10 + static_cast<std::uint64_t>(c - '0');
                if (sum >= none) return 0;
            }
            return static_cast<std::uint32_t>(sum);
        };
        if (place == Place::thread || place == Place::library) return false;  // no object
        if (place == Place::product) target = value.text;
        if (place == Place::start_time) start_ms = value.number;
        if (place >= Place::library_path && place <= Place::library_id) {
            Library& one = libraries.back();
            (place == Place::library_path ? one.path : place == Place::library_name ? one.name : one.id) = value.text;
        }
        if (place >= Place::prefix) {
            Tables& to = in_thread_ ? threads.back().tables : shared;
            if (place == Place::text)
                to.texts.emplace_back(value.text);
            else
                column(to, place).push_back(id());
        } else if (in_thread_) {
            of_thread(threads.back(), place, value, number, id);
        }
        return true;
    }

    std::string target;
    double start_ms = 0;
    std::vector<Library> libraries;
    std::vector<ThreadColumns> threads;
    Tables shared;

private:
    static std::vector<std::uint32_t>& column(Tables& tables, int place) {
        switch (place) {
            case Place::prefix:
                return tables.prefix;
            case Place::frame:
                return tables.frame;
            case Place::func:
                return tables.func;
            case Place::line:
                return tables.line;
            case Place::inline_depth:
                return tables.inline_depth;
            case Place::name:
                return tables.name;
            case Place::file:
                return tables.file;
            case Place::resource:
                return tables.resource;
            default:
                return tables.resource_library;
        }
    }

    template <class Number, class Id>
    static void of_thread(ThreadColumns& to, int place, const JsonValue& value, Number number, Id id) {
        switch (place) {
            case Place::thread_name:
                to.name = value.text;
                break;
            case Place::thread_pid:
                to.pid = number();
                break;
            case Place::thread_tid:
                to.tid = number();
                break;
            case Place::thread_process:
                to.process = value.text;
                break;
            case Place::sample_stack:
                to.stacks.push_back(id());
                break;
            case Place::sample_time:
                to.times_ms.push_back(value.number);
                break;
            case Place::sample_delta:
                to.deltas_ms.push_back(value.number);
                break;
            case Place::sample_weight:
                to.weights.push_back(value.number);
                break;
            case Place::weight_type:
                to.weight_type = value.text;
                break;
            case Place::own_event:
                to.own_event = value.text;
                break;
            case Place::own_unit:
                to.own_unit = value.text;
                break;
            case Place::own_comm:
                to.own_comm = value.text;
                break;
            case Place::own_samples:
                to.own_samples.push_back(value.number);
                break;
            case Place::own_weights:
                to.own_weights.push_back(value.number);
                break;
            case Place::own_returns:
                to.own_returns.push_back(id());
                break;
            default:
                break;
        }
    }

    bool in_thread_ = false;
};

std::uint32_t at(const std::vector<std::uint32_t>& column, std::uint32_t index) {
    return index < column.size() ? column[index] : none;
}

class Rows {
public:
    Rows(RecordingBuilder& builder, const Collector& read) : builder_(builder), read_(read) {}

    Result<bool> add(const ThreadColumns& thread) {
        const Tables* const tables = thread.tables.frame.empty() ? &read_.shared : &thread.tables;
        const std::vector<std::string>* const texts =
            thread.tables.texts.empty() ? &read_.shared.texts : &thread.tables.texts;
        // Tables that all threads share are looked at once.
        if (tables != tables_ || texts != texts_) {
            tables_ = tables;
            texts_ = texts;
            own_ = thread.own_event.empty() ? nullptr : &thread;
            resolve_stacks();
        }

        const bool own = !thread.own_event.empty(), time = thread.weight_type == "tracing-ms",
                   bytes = thread.weight_type == "bytes";
        wire::Row row;
        row.event = own     ? builder_.event(thread.own_event, thread.own_unit)
                    : time  ? builder_.event("time", "ns")
                    : bytes ? builder_.event("bytes", "bytes")
                            : builder_.event("samples", "samples");
        row.thread = builder_.thread(thread.pid, thread.tid, own ? thread.own_comm : thread.name);
        double now_ms = 0;
        for (std::size_t i = 0; i < thread.stacks.size(); ++i) {
            if (i < thread.deltas_ms.size()) now_ms += thread.deltas_ms[i];
            const double weight = i < thread.weights.size() ? thread.weights[i] : 1;
            row.stack = thread.stacks[i] < stacks_.size() ? stacks_[thread.stacks[i]] : 0;
            row.bucket = bucket_of(clamped_ns((i < thread.times_ms.size() ? thread.times_ms[i] : now_ms) * 1e6));
            const double shown = own && i < thread.own_weights.size() ? thread.own_weights[i]
                                 : time                               ? weight * 1e6
                                                                      : weight;
            if (!(shown > 0) && !own) {
                negative += shown < 0 ? 1U : 0U;
                continue;
            }
            row.weight = static_cast<std::uint64_t>(std::llround(std::clamp(shown, 0.0, 9e18)));
            row.count = own               ? narrow_count(i < thread.own_samples.size() ? thread.own_samples[i] : 1)
                        : (time || bytes) ? 1
                                          : narrow_count(weight);
            TRY(builder_.add(row));
        }
        return true;
    }

    std::uint64_t negative = 0;

private:
    // A prefix stands before what continues it; a table in which it does not is wrong there, and its stacks begin anew.
    void resolve_stacks() {
        stacks_.assign(tables_->frame.size(), 0);
        frames_.assign(tables_->func.size(), 0);
        for (std::uint32_t i = 0; i < stacks_.size(); ++i) {
            const std::uint32_t before = at(tables_->prefix, i);
            stacks_[i] = builder_.stack(before < i ? stacks_[before] : 0, frame(tables_->frame[i]));
        }
    }

    wire::Id frame(std::uint32_t index) {
        if (index >= frames_.size()) return builder_.location({.function = "(unknown)"});
        if (frames_[index] != 0) return frames_[index];
        const std::uint32_t func = tables_->func[index], line = at(tables_->line, index),
                            depth = at(tables_->inline_depth, index);
        const auto text_of = [&](std::uint32_t id) {
            return id < texts_->size() ? std::string_view((*texts_)[id]) : std::string_view{};
        };
        RecordingBuilder::Name name{.function = text_of(at(tables_->name, func)),
                                    .file = text_of(at(tables_->file, func)),
                                    .line = line == none ? 0 : line,
                                    .flags = depth != 0 && depth != none ? wire::location_flag::inlined : 0};
        if (name.function.empty()) name.function = "(anonymous)";
        std::string with_module;
        const std::uint32_t library = at(tables_->resource_library, at(tables_->resource, func));
        if (library < read_.libraries.size()) {
            const Library& one = read_.libraries[library];
            const ImportedModule module = module_of_name(one.path.empty() ? one.name : one.path);
            if (!module.path.empty()) name.module = builder_.module(module.kind, module.path, build_id_of(one.id));
            if (!module.kernel_module.empty())
                name.function = with_module = fmt::format("{} [{}]", name.function, module.kernel_module);
        }
        if (const auto address = unnamed_address(name.function); own_ != nullptr && address)
            return frames_[index] = builder_.location(
                       name.module, *address,
                       std::ranges::binary_search(own_->own_returns, index) ? wire::location_flag::return_address : 0);
        return frames_[index] = builder_.location(name);
    }

    RecordingBuilder& builder_;
    const Collector& read_;
    const Tables* tables_ = nullptr;
    const std::vector<std::string>* texts_ = nullptr;
    const ThreadColumns* own_ = nullptr;  // written by Flamewire
    std::vector<wire::Id> stacks_, frames_;
};

}  // namespace

bool recognises_firefox(std::string_view beginning) {
    return begins_as_json(beginning, '{', {"\"meta\"", "\"preprocessedProfileVersion\""});
}

Result<bool> import_firefox(ImportJob& job) {
    Collector read;
    const JsonEnd end = TRY(read_json(job, shape(), read));
    if (end == JsonEnd::cut)
        return fail(ErrorCode::invalid, "the Firefox profile ends too early: fetch or export it again");
    if (end == JsonEnd::stopped || read.threads.empty())
        return fail(ErrorCode::invalid, "the Firefox profile has no threads in it, or not as its format says");
    wire::Recording about;
    about.target = read.target;
    about.start_ns = import_moment_ns;
    constexpr double far_ms = 4e12;
    RecordingBuilder& builder =
        job.begin(std::move(about),
                  read.start_ms > 0 && read.start_ms < far_ms ? static_cast<std::int64_t>(read.start_ms * 1e6) : 0);
    Rows rows(builder, read);
    for (const ThreadColumns& thread : read.threads) TRY(rows.add(thread));
    if (rows.negative != 0)
        builder.note(
            "import-negative",
            fmt::format("{} samples have a negative weight (memory that was freed) and were left out.", rows.negative));
    return true;
}

}  // namespace flamewire::profile
