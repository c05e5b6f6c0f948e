import java.util.*;
public class Work {
  static int sieve(int n) { boolean[] a = new boolean[n]; int c = 0; for (int i = 2; i < n; i++) { if (a[i]) continue; c++; for (int j = i * 2; j < n; j += i) a[j] = true; } return c; }
  static int lists(int n) { ArrayList<Integer> a = new ArrayList<>(); int x = 1; for (int i = 0; i < n; i++) { x = (x * 1103515245 + 12345) & 0x7fffffff; a.add(x); } Collections.sort(a); return a.get(n / 2); }
  static int maps(int n) { HashMap<String, Integer> m = new HashMap<>(); for (int i = 0; i < n; i++) m.put("k" + (i * 7919 % 10007), i); int s = 0; for (Map.Entry<String, Integer> e : m.entrySet()) s = s * 31 + e.getValue() + e.getKey().length(); return s; }
  static double matrix(int n) { double[][] a = new double[n][n], b = new double[n][n], c = new double[n][n]; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { a[i][j] = i + j; b[i][j] = i - j; } for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) { double v = a[i][k]; for (int j = 0; j < n; j++) c[i][j] += v * b[k][j]; } return c[n / 2][n / 3]; }
  static int text(int n) { StringBuilder s = new StringBuilder(); for (int i = 0; i < n; i++) s.append(i).append(','); int h = 0; for (String w : s.toString().split(",")) h = h * 31 + w.hashCode(); return h; }
  public static void main(String[] arguments) {
    int scale = Integer.parseInt(arguments[0]); long out = 0;
    for (int k = 0; k < scale; k++) { out = out * 33 + sieve(300000); out = out * 33 + lists(30000); out = out * 33 + maps(30000); out = out * 33 + (long) matrix(90); out = out * 33 + text(20000); }
    System.out.println(out);
  }
}
