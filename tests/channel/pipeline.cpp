// A C++ program that checks itself: threads pass numbers on through queues with condition variables
// and time limits, exceptions cross their frames, and what comes out is known.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <future>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t NUMBERS = 8000;
constexpr int STAGES = 3;

class Queue {
public:
  void put(std::uint64_t number) {
    std::lock_guard<std::mutex> lock(mutex);
    numbers.push(number);
    has_some.notify_one();
  }

  std::uint64_t take() {
    std::unique_lock<std::mutex> lock(mutex);
    while (
        !has_some.wait_for(lock, std::chrono::milliseconds(1), [this] { return !numbers.empty(); }))
      ;
    std::uint64_t number = numbers.front();
    numbers.pop();
    return number;
  }

private:
  std::mutex mutex;
  std::condition_variable has_some;
  std::queue<std::uint64_t> numbers;
};

std::uint64_t mixed(std::uint64_t number) {
  for (int round = 0; round < 2000; round++)
    number = (number ^ (number >> 29)) * 0xbf58476d1ce4e5b9u + 1;
  if (number % 7 == 0)
    throw std::runtime_error("seven");
  return number;
}

std::uint64_t mixed_or_other(std::uint64_t number) {
  try {
    return mixed(number);
  } catch (const std::runtime_error &) {
    return number + 1;
  }
}

} // namespace

int main() {
  std::vector<Queue> queues(STAGES + 1);
  std::vector<std::thread> threads;
  for (int stage = 0; stage < STAGES; stage++)
    threads.emplace_back([&queues, stage] {
      for (std::uint64_t number = 0; number < NUMBERS; number++)
        queues[stage + 1].put(mixed_or_other(queues[stage].take()));
    });
  auto sum = std::async(std::launch::async, [&queues] {
    std::uint64_t total = 0;
    for (std::uint64_t number = 0; number < NUMBERS; number++)
      total = total * 31 + queues[STAGES].take();
    return total;
  });
  std::uint64_t wanted = 0;
  for (std::uint64_t number = 0; number < NUMBERS; number++)
    queues[0].put(number);
  for (std::thread &thread : threads)
    thread.join();
  for (std::uint64_t number = 0; number < NUMBERS; number++)
    wanted = wanted * 31 + mixed_or_other(mixed_or_other(mixed_or_other(number)));
  bool is_right = sum.get() == wanted;
  std::puts(is_right ? "right" : "wrong");
  return is_right ? 0 : 1;
}
