#include "profile/formats/perf_script_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profile/formats/line_feed.h"
#include "profile/formats/line_words.h"
#include "profile/formats/perf_script_frames.h"
#include "profile/formats/perf_script_lines.h"
#include "profile/formats/perf_stat_text.h"
#include "profile/store/id_index.h"
#include "profile/store/string_table.h"

namespace flamewire::profile {
namespace {

constexpr std::string_view stat_mark = "### PERF_STAT ###";

std::string_view unit_of(std::string_view event) {
    const std::string_view name = event.substr(0, event.find(':'));
    if (name == "cpu-clock" || name == "task-clock") return "ns";
    if (name == "page-faults" || name == "faults" || name.ends_with("-faults")) return "faults";
    if (name.find("cycles") != std::string_view::npos) return "cycles";
    if (name.find("instructions") != std::string_view::npos) return "instructions";
    return "events";
}

}  // namespace

class PerfScriptText::Reader {
public:
    Reader(Begin begin, std::optional<PerfLayout> layout) : begin_(std::move(begin)), layout_(layout) {}

    Result<bool> feed(std::string_view text) {
        return lines_.feed(text, [&](std::string_view one) { return line(one); });
    }

    Result<bool> finish() {
        TRY(lines_.finish([&](std::string_view one) { return line(one); }));
        TRY(end_sample());
        if (builder_ == nullptr) return fail(ErrorCode::invalid, "the text of perf script has no sample in it");
        if (stat_) stat_->finish(chunk_start_ns_);
        if (bad_lines_ != 0)
            builder_->note("import-lines",
                           fmt::format("{} lines are neither samples nor frames and were left out, the first "
                                       "is line {}.",
                                       bad_lines_, first_bad_));
        if (!times_) builder_->note("import-no-times", "The text has no times: the file is one moment.");
        if (late_ != 0)
            builder_->note("import-order",
                           fmt::format("{} samples are older than the first one; they stand at its time.", late_));
        return true;
    }

    Result<bool> end_chunk() {
        TRY(lines_.finish([&](std::string_view one) { return line(one); }));
        TRY(end_sample());
        if (builder_ == nullptr) return true;
        if (std::exchange(in_stat_, false) && stat_) stat_->finish(chunk_start_ns_);
        new_chunk_ = true;
        TRY(builder_->give());
        if (builder_->entries() > most_entries) begin_epoch();
        return true;
    }
    [[nodiscard]] bool begun() const { return builder_ != nullptr; }
    [[nodiscard]] std::uint64_t newest_ns() const { return newest_ns_; }

private:
    // Maximum number of entries in an epoch's tables. They take some tens of MiB, so that recordings of a day stay
    // small.
    static constexpr std::size_t most_entries = std::size_t{1} << 20;

    void begin_epoch() {
        builder_->begin_epoch();
        frames_.emplace(*builder_);
        comms_ = StringTable();
        threads_.assign(1, {});
        thread_index_ = IdIndex();
        generations_.clear();
        events_.clear();
    }

    Result<bool> line(std::string_view text) {
        ++line_number_;
        if (is_perf_source_code(text)) return true;
        if (layout_) return line_of_layout(text, *layout_);
        if (in_stat_) return stat_line(text);
        if (in_sample_) {
            if (is_blank(text)) return end_sample();
            if (is_indented(text)) {
                if (frames_->add(text)) return true;
                // A one-line sample follows another one.
                if (!parse_perf_sample(text, sample_)) return source_line(text);
                TRY(end_sample());
                return begin_sample();
            }
            PerfSampleLine next;
            if (may_be_frame(text) && !parse_perf_sample(text, next) && frames_->add(text)) return true;
            TRY(end_sample());
        }
        if (is_blank(text)) return true;
        if (text[0] == '#') return comment(text);
        if (!parse_perf_sample(text, sample_)) return bad();
        return begin_sample();
    }

    Result<bool> line_of_layout(std::string_view text, const PerfLayout& layout) {
        if (is_blank(text)) {
            if (in_sample_ || !layout.is_bare()) return end_sample();
            sample_ = {};
            return begin_sample();
        }
        if (text[0] == '\t') {
            if (!in_sample_) {
                sample_ = {};
                TRY(begin_sample());
            }
            return frames_->add(text) ? Result<bool>(true) : bad();
        }
        if (text[0] == '#') return comment(text);
        const bool below = in_sample_ && !frames_->empty();
        if (below && is_perf_source_line(text)) return true;
        if (below && layout.line_after) return end_sample();
        PerfSampleLine next;
        if (layout.is_bare() || !parse_perf_sample(text, layout, next)) return bad();
        TRY(end_sample());
        sample_ = next;
        return begin_sample();
    }

    Result<bool> bad() {
        if (bad_lines_++ == 0) first_bad_ = line_number_;
        return true;
    }

    static bool is_indented(std::string_view text) { return text[0] == ' ' || text[0] == '\t'; }
    static bool may_be_frame(std::string_view text) {
        const char c = text[0];
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    }

    Result<bool> comment(std::string_view text) {
        if (text.starts_with(stat_mark)) {
            in_stat_ = builder_ != nullptr;
            return true;
        }
        const auto value = [&](std::string_view key, std::string& into) {
            if (!text.starts_with(key) || builder_ != nullptr) return;
            text.remove_prefix(key.size());
            const std::size_t begin = text.find_first_not_of(" :\t");
            if (begin != std::string_view::npos) into = text.substr(begin, text.find_last_not_of(" \r\t") - begin + 1);
        };
        value("# hostname", about_.host);
        value("# arch", about_.arch);
        value("# os release", about_.kernel_release);
        return true;
    }

    // The output of perf stat ends where samples begin again: a file can have several chunks in sequence.
    Result<bool> stat_line(std::string_view text) {
        if (!stat_) stat_.emplace(*builder_);
        PerfSampleLine next;
        if (!text.empty() && text[0] != ' ' && parse_perf_sample(text, next) && next.has_time) {
            stat_->finish(chunk_start_ns_);
            in_stat_ = false;
            new_chunk_ = true;
            sample_ = next;
            return begin_sample();
        }
        stat_->line(text);
        return true;
    }

    Result<bool> begin_sample() {
        if (sample_.event == "PERF_RECORD_LOST") return lost();
        if (builder_ == nullptr) start();
        in_sample_ = true;
        row_.event = event();
        row_.thread = thread();
        row_.cpu = sample_.cpu;
        row_.count = 1;
        row_.weight = sample_.has_period ? sample_.period : 1;
        std::uint64_t time_ns = sample_.has_time ? sample_.time_ns + shift_ns_ : start_ns_;
        if (time_ns < start_ns_) {
            time_ns = start_ns_;
            ++late_;
        }
        if (std::exchange(new_chunk_, false)) chunk_start_ns_ = time_ns;
        newest_ns_ = std::max(newest_ns_, time_ns);
        row_.bucket = time_ns / wire::default_bucket_ns;
        times_ = times_ || sample_.has_time;
        if (layout_ ? layout_->tail == PerfLayout::Tail::frame : sample_.rest.ends_with(')'))
            (void)frames_->add(sample_.rest);
        return true;
    }

    void start() {
        // Time 0 means "unknown", so a recording without times, or with times from 0 on, starts at import_moment_ns.
        if (!sample_.has_time || sample_.time_ns < wire::default_bucket_ns) shift_ns_ = import_moment_ns;
        start_ns_ = chunk_start_ns_ = (sample_.has_time ? sample_.time_ns : 0) + shift_ns_;
        about_.start_ns = start_ns_;
        builder_ = &begin_(about_);
        frames_.emplace(*builder_);
    }

    Result<bool> lost() {
        const std::size_t at = sample_.rest.rfind("lost");
        std::uint64_t count = 0;
        if (builder_ == nullptr || at == std::string_view::npos) return bad();
        for (const char c : sample_.rest.substr(at + 4))
            if (c >= '0' && c <= '9' && count < 1'000'000'000'000)
                count = count * 10 + static_cast<std::uint64_t>(c - '0');
        if (count != 0)
            builder_->loss({.reason = wire::LossReason::ring_full,
                            .count = count,
                            .first_ns = sample_.time_ns + shift_ns_,
                            .last_ns = sample_.time_ns + shift_ns_});
        return true;
    }

    wire::Id event() {
        const std::string_view unit = sample_.has_period ? unit_of(sample_.event) : "samples";
        for (const auto& [name, id] : events_)
            if (name == sample_.event) return id;
        events_.emplace_back(sample_.event, builder_->event(sample_.event.empty() ? "samples" : sample_.event, unit));
        return events_.back().second;
    }

    // One lookup per sample, without copying the name.
    wire::Id thread() {
        const wire::Id comm = comms_.intern(sample_.comm);
        const auto hash = [](const ThreadEntry& one) {
            return hash_mix(one.comm, (static_cast<std::uint64_t>(one.pid) << 32) | one.tid);
        };
        // Without ids, only the name distinguishes threads.
        const std::uint32_t tid = layout_ && !layout_->ids ? comm : sample_.tid;
        const ThreadEntry entry{sample_.pid, tid, comm, 0};
        const auto same = [&](std::uint32_t id) {
            const ThreadEntry& other = threads_[id];
            return other.pid == entry.pid && other.tid == entry.tid && other.comm == entry.comm;
        };
        if (const auto known = thread_index_.find(hash(entry), same)) return threads_[known].id;
        // A main thread with a new name is the same process after an exec.
        if (entry.pid == entry.tid && entry.pid != 0) {
            const auto [generation, first] = generations_.try_emplace(entry.pid, 0);
            if (!first) {
                wire::Process process;
                process.pid = entry.pid;
                process.exec_generation = ++generation->second;
                process.comm = builder_->string(sample_.comm);
                (void)builder_->process(process);
            }
        }
        const auto index = narrow32(threads_.size());
        threads_.push_back(entry);
        threads_.back().id = builder_->thread(entry.pid, entry.tid, sample_.comm);
        thread_index_.insert(hash(entry), index, [&](std::uint32_t id) { return hash(threads_[id]); });
        return threads_.back().id;
    }

    // perf script -F +srcline prints such a line below its frame.
    Result<bool> source_line(std::string_view text) {
        return text.find(':') == std::string_view::npos ? bad() : Result<bool>(true);
    }

    Result<bool> end_sample() {
        if (!in_sample_) return true;
        in_sample_ = false;
        row_.stack = frames_->take_stack();
        return builder_->add(row_);
    }

    struct ThreadEntry {
        std::uint32_t pid = 0, tid = 0;
        wire::Id comm = 0, id = 0;
    };

    Begin begin_;
    std::optional<PerfLayout> layout_;
    RecordingBuilder* builder_ = nullptr;
    wire::Recording about_;
    LineFeed lines_;
    PerfSampleLine sample_;
    bool in_sample_ = false, in_stat_ = false, times_ = false, new_chunk_ = false;
    wire::Row row_;
    std::optional<PerfScriptFrames> frames_;  // from the first sample on
    StringTable comms_;
    std::vector<ThreadEntry> threads_{1};
    IdIndex thread_index_;
    std::unordered_map<std::uint32_t, std::uint32_t> generations_;  // by pid
    std::vector<std::pair<std::string, wire::Id>> events_;
    std::optional<PerfStatText> stat_;
    std::uint64_t start_ns_ = 0, shift_ns_ = 0, chunk_start_ns_ = 0, newest_ns_ = 0;
    std::uint64_t line_number_ = 0, bad_lines_ = 0, first_bad_ = 0, late_ = 0;
};

PerfScriptText::PerfScriptText(Begin begin, std::optional<PerfLayout> layout)
    : reader_(std::make_unique<Reader>(std::move(begin), layout)) {}
PerfScriptText::~PerfScriptText() = default;
Result<bool> PerfScriptText::feed(std::string_view text) { return reader_->feed(text); }
Result<bool> PerfScriptText::end_chunk() { return reader_->end_chunk(); }
Result<bool> PerfScriptText::finish() { return reader_->finish(); }
bool PerfScriptText::begun() const { return reader_->begun(); }
std::uint64_t PerfScriptText::newest_ns() const { return reader_->newest_ns(); }

bool recognises_perf_script(std::string_view beginning) {
    if (find_perf_layout(beginning)) return true;
    bool sample = false, time = false;
    while (!beginning.empty()) {
        const std::size_t end = beginning.find('\n');
        const std::string_view line = beginning.substr(0, end);
        beginning.remove_prefix(end == std::string_view::npos ? beginning.size() : end + 1);
        if (is_blank(line) || line[0] == '#') continue;
        if (line.find('\0') != std::string_view::npos) return false;
        PerfFrameLine frame;
        if (sample) return time || parse_perf_frame(line, frame);
        PerfSampleLine parsed;
        if (!parse_perf_sample(line, parsed)) return false;
        sample = true;
        time = parsed.has_time;
    }
    return sample && time;
}

Result<bool> import_perf_script(ImportJob& job) {
    std::string beginning(perf_layout_bytes, '\0');
    beginning.resize(TRY(job.source().read_at(0, beginning)));
    PerfScriptText import([&](wire::Recording about) -> RecordingBuilder& { return job.begin(std::move(about), 0); },
                          find_perf_layout(beginning));
    TRY(read_through(job, [&](std::string_view piece) { return import.feed(piece); }));
    return import.finish();
}

}  // namespace flamewire::profile
