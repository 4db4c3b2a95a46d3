// Makes passes over the file in memory: first everything that samples refer to, which can follow them in the file, then
// the samples. protozero reports malformed input by exceptions, which are caught here.
#include "profile/formats/pprof_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/pprof.h"
#include "profile/formats/pprof_frames.h"
#include "profile/formats/pprof_messages.h"

namespace flamewire::profile {
namespace {

using namespace pprof_file;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint64_t max_file_bytes = std::uint64_t{2} << 30;

// Converts a column of values to weights of an event. `count`: the column with the number of samples.
struct Column {
    wire::Id event = 0;
    std::optional<std::size_t> count;
    std::uint64_t scale = 1;
};

std::uint64_t nanoseconds_of(std::string_view unit) {
    if (unit == pprof_nanoseconds || unit == "ns" || unit == "nanosecond") return 1;
    if (unit == "microseconds" || unit == "us" || unit == "microsecond") return 1'000;
    if (unit == "milliseconds" || unit == "ms" || unit == "millisecond") return 1'000'000;
    if (unit == "seconds" || unit == "s" || unit == "second") return 1'000'000'000;
    return 0;
}

class Reader {
public:
    Reader(ImportJob& job, std::string_view file) : job_(job), file_(file) {}

    Result<bool> run() {
        // The string table comes first: all other messages refer to strings by index.
        bool whole = pass([&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(6)) return in.skip();
            texts_.add(view_of(in));
        });
        whole = pass([&](pbf_reader& in) { header(in); }) && whole;
        if (types_.empty()) return fail(ErrorCode::invalid, "the pprof profile has no sample type: it is incomplete");
        start();
        whole = pass([&](pbf_reader& in) { tables(in); }) && whole;
        Result<bool> done = true;
        std::uint64_t samples = 0;
        constexpr std::uint64_t seldom = 4096;
        const auto each_sample = [&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(2) || !done) return in.skip();
            const std::string_view one = view_of(in);
            done = sample(one);
            if (++samples % seldom == 0) job_.progress(static_cast<std::uint64_t>(one.data() - file_.data()));
        };
        whole = pass(each_sample) && whole;
        if (!done) return done;
        notes(whole);
        return true;
    }

private:
    // Calls each(reader) for every field of the file. False: the file is damaged or ends inside a field.
    template <class Each>
    bool pass(Each each) {
        try {
            pbf_reader in = message(file_);
            while (in.next()) each(in);
            return true;
        } catch (const protozero::exception&) {
            return false;
        }
    }

    void header(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(1): types_.push_back(read_sample_type(view_of(in), texts_)); break;
            case varint(9): time_ns_ = in.get_int64(); break;
            case varint(13): comments_.push_back(texts_.at(in.get_int64())); break;
            case bytes(13):
                for (const std::int64_t index : in.get_packed_int64()) comments_.push_back(texts_.at(index));
                break;
            case varint(14): default_type_ = texts_.at(in.get_int64()); break;
            default: in.skip();
        }
    }

    void start() {
        wire::Recording about;
        about.start_ns = import_moment_ns;
        constexpr std::string_view target = "target: ";
        for (const std::string_view comment : comments_)
            if (comment.starts_with(target)) about.target = comment.substr(target.size());
        builder_ = &job_.begin(std::move(about), std::max<std::int64_t>(time_ns_, 0));
        frames_.emplace(job_, *builder_);
        columns_.resize(types_.size());
        // The file's default sample type becomes the first event.
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (types_[i].type == default_type_ && !default_type_.empty() && !counts_only(i)) add_column(i);
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (columns_[i].event == 0 && !counts_only(i)) add_column(i);
        row_.bucket = import_moment_ns / wire::default_bucket_ns;
    }

    [[nodiscard]] bool is_count(std::size_t i) const { return types_[i].unit == "count"; }
    // Returns whether the column only gives the number of samples for the next column's value.
    [[nodiscard]] bool counts_only(std::size_t i) const {
        if (!is_count(i) || i + 1 == types_.size()) return false;
        const std::string_view type = types_[i].type, next = types_[i + 1].type;
        if (type == "samples" || type == "sample") return !is_count(i + 1) || types_.size() == 2;
        return type.ends_with("_samples") && type.substr(0, type.size() - 8) == next;
    }

    void add_column(std::size_t i) {
        Column& column = columns_[i];
        const std::string_view type = types_[i].type.empty() ? "value" : types_[i].type;
        column.scale = nanoseconds_of(types_[i].unit);
        column.event = builder_->event(type, column.scale != 0        ? "ns"
                                             : types_[i].unit.empty() ? type
                                             : is_count(i)            ? type
                                                                      : types_[i].unit);
        if (column.scale == 0) column.scale = 1;
        if (is_count(i) && !(i > 0 && counts_only(i - 1)))
            column.count = i;
        else if (i > 0 && is_count(i - 1))
            column.count = i - 1;
    }

    void tables(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(3): frames_->add(read_mapping(view_of(in), texts_)); break;
            case bytes(4): frames_->add_location(view_of(in)); break;
            case bytes(5): frames_->add(read_function(view_of(in), texts_)); break;
            default: in.skip();
        }
    }

    struct Labels {
        std::uint32_t pid = 0, tid = 0;
        std::string_view thread, process, container, pod, cgroup;
        bool has_tid = false;
    };

    void label(const Label& label, Labels& labels) {
        const auto& [key, string, number] = label;
        if (key == "pid" || key == "process_id" || key == "process id") {
            labels.pid = label.whole();
        } else if (key == "tid" || key == "thread_id" || key == "thread id") {
            labels.tid = label.whole();
            labels.has_tid = labels.tid != 0;
        } else if (key == "thread" || key == "thread_name" || key == "thread name" || key == "comm" ||
                   key == "thread_comm") {
            labels.thread = string;
        } else if (key == "process" || key == "process_name" || key == "process name" || key == "process_comm") {
            labels.process = string;
        } else if (key == "container_id") {
            labels.container = string;
        } else if (key == "cgroup_path") {
            labels.cgroup = string;
        } else if (key == "pod_uid") {
            labels.pod = string;
        } else if (other_labels_.size() < 8) {
            other_labels_.insert(key);
        }
    }

    wire::Id thread(Labels labels) {
        // Threads are distinguished by number. Threads that only have a name get a number.
        if (!labels.has_tid && !labels.thread.empty())
            labels.tid =
                invented_.try_emplace({labels.pid, labels.thread}, narrow32(invented_.size() + 1)).first->second;
        // The pod of a process is part of its cgroup path. It cannot be stored elsewhere.
        if (!labels.pod.empty() && parse_cgroup_path(labels.cgroup).pod_uid != labels.pod && other_labels_.size() < 8)
            other_labels_.insert("pod_uid");
        const bool labeled = !labels.process.empty() || !labels.container.empty() || !labels.cgroup.empty();
        if (labeled && named_processes_.insert(labels.pid).second) {
            wire::Process process;
            process.pid = labels.pid;
            process.comm = builder_->string(labels.process);
            process.container_id = builder_->string(labels.container);
            process.cgroup = builder_->string(labels.cgroup);
            (void)builder_->process(process);
        }
        return builder_->thread(labels.pid, labels.tid, labels.thread);
    }

    Result<bool> sample(std::string_view one) {
        read_sample(one, texts_, sample_);
        const std::vector<std::uint64_t>& values = sample_.values;
        Labels labels;
        for (const Label& one_label : sample_.labels) label(one_label, labels);
        row_.stack = frames_->stack(sample_.locations);
        row_.thread = thread(labels);
        for (std::size_t i = 0; i < std::min(values.size(), columns_.size()); ++i) {
            const Column& column = columns_[i];
            if (column.event == 0) continue;
            const std::uint64_t count = column.count && *column.count != i ? values[*column.count] : 0;
            if (values[i] == 0 && count == 0) continue;
            if (static_cast<std::int64_t>(values[i]) < 0) {
                ++negative_;
                continue;
            }
            row_.event = column.event;
            row_.weight = values[i] > std::numeric_limits<std::int64_t>::max() / column.scale
                              ? std::numeric_limits<std::int64_t>::max()
                              : values[i] * column.scale;
            const std::uint64_t samples = !column.count ? 1 : *column.count == i ? values[i] : count;
            row_.count = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(samples, 1, std::numeric_limits<std::uint32_t>::max()));
            TRY(builder_->add(row_));
        }
        return true;
    }

    void notes(bool whole) {
        builder_->note("import-no-times", "A pprof profile has sums without times: it is shown as one moment.");
        if (!whole)
            builder_->note("import-truncated", "The file ends too early or is damaged: the part before is shown.");
        if (!frames_->missing().empty()) note_missing();
        if (!other_labels_.empty()) {
            std::string list;
            for (const std::string_view key : other_labels_)
                list += fmt::format("{}{:.40}", list.empty() ? "" : ", ", key);
            builder_->note("import-labels", fmt::format("Labels of samples that are not shown: {}.", list));
        }
        if (negative_ != 0)
            builder_->note(
                "import-negative",
                fmt::format("{} values are negative (a difference of profiles) and were left out.", negative_));
    }

    void note_missing() {
        constexpr std::size_t most = 5;
        const std::vector<std::string_view>& missing = frames_->missing();
        std::string list;
        for (std::size_t i = 0; i < std::min(missing.size(), most); ++i)
            list += fmt::format("{}{:.200}", i == 0 ? "" : ", ", missing[i]);
        if (missing.size() > most) list += ", …";
        builder_->note("import-modules",
                       fmt::format("Files that are not on this machine: {}. Their addresses are estimates.", list),
                       "give the files with --binary FILE or --sysroot DIR and import again");
    }

    ImportJob& job_;
    std::string_view file_;
    RecordingBuilder* builder_ = nullptr;
    Texts texts_;
    std::vector<std::string_view> comments_;
    std::vector<SampleType> types_;
    std::vector<Column> columns_;
    std::string_view default_type_;
    std::int64_t time_ns_ = 0;
    std::optional<PprofFrames> frames_;  // from start() on
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> invented_;
    std::set<std::uint32_t> named_processes_;
    std::set<std::string_view> other_labels_;
    Sample sample_;
    wire::Row row_;
    std::uint64_t negative_ = 0;
};

bool is_sample_type(std::string_view one) {
    pbf_reader in = message(one);
    while (in.next()) {
        if (in.tag_and_type() != varint(1) && in.tag_and_type() != varint(2)) return false;
        in.skip();
    }
    return true;
}

}  // namespace

bool recognises_pprof(std::string_view beginning) {
    bool has_type = false;
    try {
        pbf_reader in = message(beginning);
        while (in.next()) {
            const std::uint32_t tag = in.tag();
            const bool numbers = (tag >= 7 && tag <= 10) || (tag >= 12 && tag <= 15);
            const bool packed = tag == 13;
            const bool right = in.wire_type() == (numbers ? pbf_wire_type::varint : pbf_wire_type::length_delimited) ||
                               (packed && in.wire_type() == pbf_wire_type::length_delimited);
            if (tag > 15 || !right) return false;
            if (tag == 1) {
                if (!is_sample_type(view_of(in))) return false;
                has_type = true;
            } else {
                in.skip();
            }
        }
        return has_type;
    } catch (const protozero::end_of_buffer_exception&) {
        // The beginning can be cut inside a field, and so can a file.
        return has_type;
    } catch (const protozero::exception&) {
        return false;
    }
}

Result<bool> import_pprof(ImportJob& job) {
    if (job.source().size() > max_file_bytes)
        return fail(ErrorCode::too_large, "the pprof profile has more than 2 GiB; take a shorter one");
    TRY(job.make_room(job.source().size()));
    std::string file(job.source().size(), '\0');
    file.resize(TRY(job.source().read_at(0, file)));
    try {
        return Reader(job, file).run();
    } catch (const protozero::exception&) {
        return fail(ErrorCode::invalid, "the pprof profile is damaged");
    }
}

}  // namespace flamewire::profile
